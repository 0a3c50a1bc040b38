package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A Line is one line of an exported account: a database, a container of the last database, or a document of the last
// container.
type Line struct {
	Database   string          `json:"database,omitempty"`
	Container  string          `json:"container,omitempty"`
	Properties json.RawMessage `json:"properties,omitempty"`
	Throughput *Throughput     `json:"throughput,omitempty"`
	Document   json.RawMessage `json:"document,omitempty"`
}

func (o *Offer) toThroughput() *Throughput {
	if o == nil {
		return nil
	}
	return &Throughput{Manual: o.Manual, Autoscale: o.Autoscale}
}

// Export visits each database, then its containers, then their documents. Documents are as clients wrote them, in the
// order of insertion within each logical partition. All data is from one state of the account.
func (e *Engine) Export(visit func(Line) error) error {
	now := e.clock()
	return e.store.View(func(r disk.Reader) error {
		for _, db := range e.Databases() {
			properties, err := removeMembers(db.JSON, isMetadata)
			if err == nil {
				err = visit(Line{Database: db.ID, Properties: properties, Throughput: db.offer.toThroughput()})
			}
			if err != nil {
				return err
			}
			order := func(a, b *Container) int { return cmp.Compare(a.number, b.number) }
			for _, c := range slices.SortedFunc(maps.Values(db.containers), order) {
				if properties, err = removeMembers(c.JSON, isMetadata); err != nil {
					return err
				}
				if err := visit(Line{Container: c.ID, Properties: properties, Throughput: c.offer.toThroughput()}); err != nil {
					return err
				}
				prefix := containerPrefix('D', c.number)
				r.Scan(prefix, endOfPrefix(prefix), func(key, value []byte) bool {
					s := readStored(key, value)
					if c.hasExpired(s, now) {
						return true
					}
					var doc []byte
					if doc, err = s.readJSON(r, c); err == nil {
						err = visit(Line{Document: append(slices.Clone(doc[:s.user]), '}')})
					}
					return err == nil
				})
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// importBatch is the number of documents in one transaction of an import.
const importBatch = 100

// An Importer adds an exported account to an engine. It replaces documents with the same id, and changes no other
// existing data.
type Importer struct {
	e         *Engine
	database  string
	container *Container
	ops       []PlacedOp
	Documents int
}

// Importer returns an Importer that adds to e.
func (e *Engine) Importer() *Importer { return &Importer{e: e} }

// Add imports the next line. After the last line, the caller must call Flush.
func (i *Importer) Add(ctx context.Context, l Line) error {
	if l.Document != nil {
		return i.addDocument(ctx, l.Document)
	}
	if err := i.Flush(ctx); err != nil {
		return err
	}
	var t Throughput
	if l.Throughput != nil {
		t = *l.Throughput
	}
	switch {
	case l.Database != "":
		i.database, i.container = l.Database, nil
		_, err := i.e.CreateDatabase(ctx, l.Properties, t)
		return ignoreConflict(err)
	case l.Container != "" && i.database != "":
		_, err := i.e.CreateContainer(ctx, i.database, l.Properties, t)
		if err = ignoreConflict(err); err != nil {
			return err
		}
		i.container, err = i.e.Container(i.database, l.Container)
		return err
	}
	return badRequest("want a database, a container of a database, or a document")
}

func ignoreConflict(err error) error {
	var known *Error
	if errors.As(err, &known) && known.Status == http.StatusConflict {
		return nil
	}
	return err
}

func (i *Importer) addDocument(ctx context.Context, body []byte) error {
	if i.container == nil {
		return badRequest("a document comes before its container")
	}
	compact, err := rawjson.Compact(nil, body)
	if err != nil {
		return badRequest("%v", err)
	}
	doc, err := i.container.ParseDocument(compact, true)
	if err != nil {
		return err
	}
	i.ops = append(i.ops, PlacedOp{Op{Kind: Upsert, Doc: doc}, doc.Partition})
	if len(i.ops) < importBatch {
		return nil
	}
	return i.Flush(ctx)
}

// Flush writes the documents that Add has collected.
func (i *Importer) Flush(ctx context.Context) error {
	if len(i.ops) == 0 {
		return nil
	}
	written, err := i.e.WriteEach(ctx, i.container, i.ops, Consistency{})
	if err != nil {
		return err
	}
	for n, result := range written.Results {
		if result.Status >= 300 {
			return newErrorf(result.Status, "document %q: %s", i.ops[n].Doc.ID, result.Message)
		}
	}
	i.Documents += len(i.ops)
	i.ops = i.ops[:0]
	return nil
}
