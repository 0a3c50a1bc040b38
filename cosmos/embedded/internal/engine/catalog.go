package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/checksum"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// loadCatalog fills the catalog. It is called once, before the engine is used.
func (e *Engine) loadCatalog(tx disk.Tx) error {
	var broken error
	scan := func(prefix string, read func(key []byte, r resourceRecord) error) {
		tx.Scan([]byte(prefix), endOfPrefix([]byte(prefix)), func(key, value []byte) bool {
			var r resourceRecord
			if len(value) < 4 || binary.BigEndian.Uint32(value) != checksum.Compute(value[4:]) {
				broken = fmt.Errorf("the record of %q is damaged", key)
			} else if broken = json.Unmarshal(slices.Clone(value[4:]), &r); broken == nil {
				broken = read(key, r)
			}
			return broken == nil
		})
	}
	scan("d", func(_ []byte, r resourceRecord) error {
		db, err := newDatabase(r)
		if err == nil {
			e.catalog[db.ID] = db
		}
		return err
	})
	if broken == nil {
		scan("c", func(_ []byte, r resourceRecord) error {
			for _, db := range e.catalog {
				if db.number == r.Parent {
					c, err := e.newContainer(db.ID, r)
					if err == nil {
						db.containers[c.ID] = c
					}
					return err
				}
			}
			return errors.New("a container without a database")
		})
	}
	if broken != nil {
		return fmt.Errorf("%w: %w", disk.ErrDamaged, broken)
	}
	newest := decodeNumber(tx.Get(counterKey))
	tx.Scan([]byte("P"), endOfPrefix([]byte("P")), func(key, value []byte) bool {
		u := readUsage(value)
		if len(key) > 5 {
			e.sizeOfContainer(binary.BigEndian.Uint32(key[1:])).Add(u.bytes)
		}
		if u.version > newest {
			broken = fmt.Errorf("write %d comes after the last one, %d", u.version, newest)
		}
		return broken == nil
	})
	if broken != nil {
		return fmt.Errorf("%w: %w", disk.ErrDamaged, broken)
	}
	return nil
}

// nextResource returns an unused number for a database or container.
func nextResource(tx disk.Tx) uint32 {
	n := decodeNumber(tx.Get(resourceKey)) + 1
	tx.Put(resourceKey, appendNumber(n))
	return uint32(n) //nolint:gosec // fewer than four billion containers are created
}

// Databases returns all databases in the order of their creation.
func (e *Engine) Databases() []*Database {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.SortedFunc(maps.Values(e.catalog), func(a, b *Database) int { return cmp.Compare(a.number, b.number) })
}

// Database returns the database named id.
func (e *Engine) Database(id string) (*Database, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if db := e.catalog[id]; db != nil {
		return db, nil
	}
	return nil, notFound("database", id)
}

// IsDatabaseRID reports whether text is formatted like the resource id of a database.
func IsDatabaseRID(text string) bool {
	id, err := parseRID(text)
	return err == nil && len(id) == 4
}

// DatabaseByRID returns the database whose resource id is rid, or nil.
func (e *Engine) DatabaseByRID(rid string) *Database {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, db := range e.catalog {
		if db.rid == rid {
			return db
		}
	}
	return nil
}

// ContainerByRID returns the container of a database whose resource id is rid, or nil.
func (e *Engine) ContainerByRID(database, rid string) *Container {
	db, err := e.Database(database)
	if err != nil {
		return nil
	}
	for _, c := range db.containers {
		if c.RID == rid {
			return c
		}
	}
	return nil
}

// Containers returns the containers of a database in the order of their
// creation.
func (e *Engine) Containers(database string) ([]*Container, error) {
	db, err := e.Database(database)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(db.containers), func(a, b *Container) int { return cmp.Compare(a.number, b.number) }), nil
}

// Container returns a container of a database.
func (e *Engine) Container(database, id string) (*Container, error) {
	db, err := e.Database(database)
	if err != nil {
		return nil, err
	}
	if c := db.containers[id]; c != nil {
		return c, nil
	}
	return nil, notFound("container", id)
}

// changeDatabase runs fn in a transaction with a new write number. It then publishes the database that fn returned as
// id; nil removes the database.
func (e *Engine) changeDatabase(ctx context.Context, id string, fn func(tx disk.Tx, version uint64) (*Database, error)) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	var db *Database
	// The transaction ignores cancellation. Otherwise Update could return before the transaction commits, and the
	// catalog would not have the change.
	err := e.store.Update(context.WithoutCancel(ctx), func(tx disk.Tx) (err error) {
		version := decodeNumber(tx.Get(counterKey)) + 1
		tx.Put(counterKey, appendNumber(version))
		tx.OnCommit(e.noteCommit)
		db, err = fn(tx, version)
		return err
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if db == nil {
		delete(e.catalog, id)
	} else {
		e.catalog[id] = db
	}
	return nil
}

// CreateDatabase creates a database from its JSON. Its containers share the throughput t, unless they have their own.
func (e *Engine) CreateDatabase(ctx context.Context, body []byte, t Throughput) (*Database, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	var p struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, badRequest("database: %v", err)
	}
	if err := checkResourceID("database", p.ID); err != nil {
		return nil, err
	}
	var db *Database
	err := e.changeDatabase(ctx, p.ID, func(tx disk.Tx, version uint64) (*Database, error) {
		if tx.Get(databaseKey(p.ID)) != nil {
			return nil, newErrorf(http.StatusConflict, "database %q already exists", p.ID)
		}
		r := resourceRecord{Number: nextResource(tx)}
		id := formatRID(containerRID(r.Number, 0)[:4])
		doc, err := e.addSystemProperties(body, id, "dbs/"+id+"/", version, `,"_colls":"colls/","_users":"users/"`)
		if err != nil {
			return nil, err
		}
		r.JSON = doc
		r.Offer = e.newOffer(nextResource(tx), t, version)
		putRecord(tx, databaseKey(p.ID), r)
		db, err = newDatabase(r)
		return db, err
	})
	return db, err
}

// DeleteDatabase deletes a database and its containers, if ifMatch is empty or the etag of the database.
func (e *Engine) DeleteDatabase(ctx context.Context, id, ifMatch string) error {
	return e.changeDatabase(ctx, id, func(tx disk.Tx, _ uint64) (*Database, error) {
		db, err := e.Database(id)
		if err == nil {
			err = checkETag(ifMatch, db.etag)
		}
		if err != nil {
			return nil, err
		}
		for _, c := range db.containers {
			removeContainer(tx, c)
		}
		tx.Delete(databaseKey(id))
		return nil, nil
	})
}

// CreateContainer creates a container from its JSON. If neither t nor the database sets a
// throughput, the container gets the minimum.
func (e *Engine) CreateContainer(ctx context.Context, database string, body []byte, t Throughput) (*Container, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	return e.putContainer(ctx, database, "", "", body, t)
}

// ReplaceContainer changes the properties of a container, if ifMatch is empty or the etag of the container. The
// partition key cannot change.
func (e *Engine) ReplaceContainer(ctx context.Context, database, id, ifMatch string, body []byte) (*Container, error) {
	return e.putContainer(ctx, database, id, ifMatch, body, Throughput{})
}

func (e *Engine) putContainer(ctx context.Context, database, replaces, ifMatch string, body []byte, t Throughput) (*Container, error) {
	d, err := parseDefinition(body)
	if err != nil {
		return nil, err
	}
	if replaces != "" && d.ID != replaces {
		return nil, badRequest("container %q cannot be renamed to %q", replaces, d.ID)
	}
	if err := d.checkNew(body); err != nil {
		return nil, err
	}
	var c *Container
	err = e.changeDatabase(ctx, database, func(tx disk.Tx, version uint64) (*Database, error) {
		db, err := e.Database(database)
		if err != nil {
			return nil, err
		}
		r := resourceRecord{Number: nextResource(tx), Parent: db.number}
		old := db.containers[d.ID]
		if d.PartitionKey.Version == 0 {
			d.PartitionKey.Version = defaultHashVersion
			if old != nil {
				d.PartitionKey.Version = old.keyVersion
			}
		}
		switch {
		case replaces == "" && old != nil:
			return nil, newErrorf(http.StatusConflict, "container %q already exists", d.ID)
		case replaces != "" && old == nil:
			return nil, notFound("container", d.ID)
		case old != nil && (!slices.Equal(old.keyText, d.PartitionKey.Paths) || old.keyVersion != d.PartitionKey.hashVersion()):
			return nil, badRequest("the partition key of container %q cannot be changed", d.ID)
		case old != nil && !hasSameKeys(old.unique, d.UniqueKeys):
			return nil, badRequest("the unique keys of container %q cannot be changed", d.ID)
		case old != nil && checkETag(ifMatch, old.ETag) != nil:
			return nil, checkETag(ifMatch, old.ETag)
		case old != nil:
			r = old.toRecord()
		default:
			e.provisionContainer(tx, &r, db, t, d.PartitionKey.hashVersion(), version)
		}
		if body, err = withDefaults(body, d); err != nil {
			return nil, err
		}
		id := formatRID(containerRID(db.number, r.Number))
		doc, err := e.addSystemProperties(body, id, "dbs/"+db.rid+"/colls/"+id+"/", version, `,"_docs":"docs/","_sprocs":"sprocs/","_triggers":"triggers/","_udfs":"udfs/","_conflicts":"conflicts/"`)
		if err != nil {
			return nil, err
		}
		r.JSON = doc
		putRecord(tx, containerKey(database, d.ID), r)
		tx.Put(containerPrefix('N', r.Number), []byte(d.ID))
		if c, err = e.newContainer(database, r); err != nil {
			return nil, err
		}
		return db.withContainer(c), nil
	})
	return c, err
}

// provisionContainer sets the throughput and the physical partitions of a new container.
func (e *Engine) provisionContainer(tx disk.Tx, r *resourceRecord, db *Database, t Throughput, keyVersion int, version uint64) {
	if t == (Throughput{}) && db.offer == nil {
		t.Manual = defaultThroughput
	}
	n := 1
	if r.Offer = e.newOffer(nextResource(tx), t, version); r.Offer != nil {
		n = countRangesFor(r.Offer.Throughput(), 0, e.rangeBytes)
	}
	r.Ranges, r.NextRange = firstRanges(n, keyVersion, version), n
}

// withContainer returns a copy of db that contains c.
func (db *Database) withContainer(c *Container) *Database {
	copied := *db
	copied.containers = maps.Clone(db.containers)
	copied.containers[c.ID] = c
	return &copied
}

// DeleteContainer deletes a container and its documents, if ifMatch is empty or the etag of the container.
func (e *Engine) DeleteContainer(ctx context.Context, database, id, ifMatch string) error {
	return e.changeDatabase(ctx, database, func(tx disk.Tx, _ uint64) (*Database, error) {
		c, err := e.Container(database, id)
		if err == nil {
			err = checkETag(ifMatch, c.ETag)
		}
		if err != nil {
			return nil, err
		}
		removeContainer(tx, c)
		db, err := e.Database(database)
		if err != nil {
			return nil, err
		}
		copied := *db
		copied.containers = maps.Clone(db.containers)
		delete(copied.containers, id)
		return &copied, nil
	})
}

func removeContainer(tx disk.Tx, c *Container) {
	var keys [][]byte
	for _, kind := range []byte("IDBPNLU") {
		prefix := containerPrefix(kind, c.number)
		tx.Scan(prefix, endOfPrefix(prefix), func(key, _ []byte) bool {
			keys = append(keys, slices.Clone(key))
			return true
		})
	}
	for _, key := range keys {
		tx.Delete(key)
	}
	tx.Delete(containerKey(c.Database, c.ID))
}

func putRecord(tx disk.Tx, key []byte, r resourceRecord) {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // cannot fail for numbers and valid JSON
	}
	tx.Put(key, append(binary.BigEndian.AppendUint32(nil, checksum.Compute(b)), b...))
}
