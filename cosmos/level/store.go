package level

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Options of a Store.
type Options struct {
	Table   Table
	Version string // version of the program
	// IsUsed reports whether nodes of a version that did not know levels have used the store. Such a
	// store has level 1. IsUsed must not depend on stale reads. nil: the store is not used.
	IsUsed func(context.Context) (bool, error)

	BeatEvery  time.Duration         // interval between beats; default and maximum 10 s
	Retries    int                   // number of retries that the requests of one call share; default 24, negative: none
	Clock      func() time.Time      // source of the times in the history, which decide nothing; default time.Now
	Random     func() uint64         // source of ids and jitter; default: the system's random numbers
	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: none
}

// A Store reads and changes the level of a store. It is safe for concurrent use.
type Store struct {
	client  *client.Client
	catalog *azcosmos.ContainerClient
	opts    Options
}

// Open returns the Store of db, and creates its document if it does not exist. It fails with
// NewerFormat if the current or the announced level of the store is higher than the highest of the
// table. Every node must call it before its first other write.
func Open(ctx context.Context, db *client.Database, opts Options) (*Store, error) {
	opts.Version = cmp.Or(opts.Version, "unknown")
	opts.BeatEvery = min(cmp.Or(opts.BeatEvery, beatEvery), beatEvery)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	catalog, err := db.Container(containerName)
	if err != nil {
		return nil, err
	}
	s := &Store{
		client:  client.New(db, client.Options{Retries: opts.Retries, Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, Registerer: opts.Registerer}),
		catalog: catalog, opts: opts,
	}
	d := &levelDocument{} // a stale read may contain a lower level; Join reads the current level
	_, err = s.client.Begin("read level").Read(ctx, catalog, documentKey, documentID, d)
	if client.IsNotFound(err) {
		d, err = s.ensureDocument(ctx)
	}
	if err != nil {
		return nil, client.Classify("read the level of the store", err)
	}
	return s, s.checkKnown(d)
}

// ensureDocument returns the current document, and creates it if it does not exist.
func (s *Store) ensureDocument(ctx context.Context) (d *levelDocument, err error) {
	c := s.client.Begin("make level")
	return d, client.Classify("read the level of the store", c.Retry(ctx, func() error {
		if d, err = s.currentDocument(ctx, c); !client.IsNotFound(err) {
			return err
		}
		level, isUsed := s.opts.Table.Highest(), false
		if s.opts.IsUsed != nil {
			if isUsed, err = s.opts.IsUsed(ctx); err != nil {
				return err
			}
		}
		if isUsed {
			level = 1
		}
		d = &levelDocument{
			ID: documentID, PartitionKey: documentKey, Kind: Document.Name, WriteID: s.client.NewID(), Level: level,
			Nodes: map[string]storedNode{}, History: []Change{s.historyEntry(created, level, "")},
		}
		// A crash after this write leaves the level document, which the next Open reads.
		if _, err = c.Put(ctx, s.catalog, documentKey, documentID, "", d); client.IsRefused(err) {
			return client.ErrStale // another node, or an earlier attempt, has created the document
		}
		return err
	}))
}

// checkKnown fails with NewerFormat if the current or the announced level is not in the table.
func (s *Store) checkKnown(d *levelDocument) error {
	required, highest := d.requiredLevel(), s.opts.Table.Highest()
	if required <= highest {
		return nil
	}
	use := "a newer version"
	if version := d.versionOf(required); version != "" {
		use = "version " + version + " or a newer one"
	}
	if d.Level <= highest {
		return domain.Errorf(domain.NewerFormat, "an upgrade of the store to level %d has begun, and this version knows levels up to %d: use %s, or take the upgrade back with messagehub upgrade --back of that version",
			required, highest, use)
	}
	return domain.Errorf(domain.NewerFormat, "the store has level %d, and this version knows levels up to %d: use %s", required, highest, use)
}

// currentDocument returns the current document. It sends a patch that changes nothing, because a read
// may be stale.
func (s *Store) currentDocument(ctx context.Context, c *client.Call) (*levelDocument, error) {
	ops := client.NewPatch(Document)
	ops.AppendSet("/kind", Document.Name)
	return s.applyPatch(ctx, c, ops)
}

// applyPatch applies operations and returns the resulting document. If the patch is refused, it fails
// with client.ErrStale, or with NewerFormat if this version does not know the format of the document.
func (s *Store) applyPatch(ctx context.Context, c *client.Call, ops azcosmos.PatchOperations) (*levelDocument, error) {
	d := &levelDocument{}
	err := c.Patch(ctx, s.catalog, documentKey, documentID, ops, d)
	if client.StatusOf(err) != http.StatusPreconditionFailed {
		return d, err
	}
	if _, err = c.Read(ctx, s.catalog, documentKey, documentID, d); domain.KindOf(err) == domain.NewerFormat {
		return nil, err
	}
	return nil, client.ErrStale
}

// A patch is a change of the document, with conditions in addition to the condition on the write id.
type patch struct {
	conditions []string
	operations func(*azcosmos.PatchOperations)
}

// updateDocument applies the patch that decide returns for the current document, and returns the
// resulting document. If another writer changes the document in between, it calls decide again. It
// returns nil if decide returns no patch.
func (s *Store) updateDocument(ctx context.Context, name string, decide func(*levelDocument) (*patch, error)) (d *levelDocument, err error) {
	c := s.client.Begin(name)
	err = c.Retry(ctx, func() error {
		if d, err = s.currentDocument(ctx, c); err != nil {
			return err
		}
		p, err := decide(d)
		if p == nil || err != nil {
			return err
		}
		ops := client.NewPatch(Document, append(p.conditions, fmt.Sprintf("c.writeId = '%s'", d.WriteID))...)
		ops.AppendSet("/writeId", s.client.NewID())
		p.operations(&ops)
		d, err = s.applyPatch(ctx, c, ops)
		return err
	})
	return d, c.Outcome(name, err)
}

// historyEntry returns an entry for the history, with the current time and version.
func (s *Store) historyEntry(what string, level int, by string) Change {
	return Change{What: what, Level: level, At: s.opts.Clock().UTC().Truncate(time.Second), Version: s.opts.Version, By: by}
}

// encodeValue returns the JSON of a value for a patch, in the encoding of documents. azcosmos would
// encode the value differently.
func encodeValue(value any) json.RawMessage { return client.Encode(value) }

// maxHistory is the limit for the entries of the history.
const maxHistory = 100

// appendHistory adds an entry to the history of d. If the history is full, it removes the oldest entry.
func appendHistory(d *levelDocument, ops *azcosmos.PatchOperations, c *Change) {
	if len(d.History) >= maxHistory {
		ops.AppendRemove("/history/0")
	}
	ops.AppendAdd("/history/-", encodeValue(c))
}

// A Status is the level of a store and its nodes.
type Status struct {
	Level     int    // level of the store
	Announced int    // level that an upgrade has announced; 0: none
	Highest   int    // highest level that this version knows
	Step      string // name of the unfinished step; "": none
	Nodes     []Node
	History   []Change
}

// A Node describes a node that has joined the store. It may have died.
type Node struct {
	ID      string
	Version string
	Host    string
	Level   int // highest level that the node knows
	Beat    int64
}

// Status returns the current level and nodes.
func (s *Store) Status(ctx context.Context) (Status, error) {
	d, err := s.ensureDocument(ctx)
	if err != nil {
		return Status{}, err
	}
	return s.statusOf(d), nil
}

func (s *Store) statusOf(d *levelDocument) Status {
	st := Status{Level: d.Level, Announced: d.Announced, Highest: s.opts.Table.Highest(), Nodes: nodesOf(d), History: d.History}
	if d.Step != nil {
		st.Step = d.Step.Name
	}
	return st
}

// nodesOf returns the nodes of a document, in the order of their ids.
func nodesOf(d *levelDocument) []Node {
	var nodes []Node
	for _, id := range slices.Sorted(maps.Keys(d.Nodes)) {
		n := d.Nodes[id]
		nodes = append(nodes, Node{ID: id, Version: n.Version, Host: n.Host, Level: n.Level, Beat: n.Beat})
	}
	return nodes
}
