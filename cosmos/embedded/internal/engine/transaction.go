package engine

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// errRolledBack rolls back the transaction of a failed batch. The result contains the reason.
var errRolledBack = errors.New("rolled back")

// Write executes ops atomically in one logical partition.
func (e *Engine) Write(ctx context.Context, c *Container, pk Partition, ops []Op, consistency Consistency) (WriteResult, error) {
	return e.runWrite(ctx, c, consistency, func(w *writeTransaction) error { return w.applyAll(pk, ops) })
}

// A PlacedOp is an operation in a logical partition.
type PlacedOp struct {
	Op
	Partition Partition
}

// WriteEach executes each of ops, which may be in different partitions. They share a transaction, but an operation that
// fails does not affect the rest.
func (e *Engine) WriteEach(ctx context.Context, c *Container, ops []PlacedOp, consistency Consistency) (WriteResult, error) {
	return e.runWrite(ctx, c, consistency, func(w *writeTransaction) error { return w.applyEach(ops) })
}

func (e *Engine) runWrite(ctx context.Context, c *Container, consistency Consistency, do func(*writeTransaction) error) (WriteResult, error) {
	// The transaction stores its results in w, which is read only if Update has waited for the transaction. If ctx ends
	// first, the caller gets an error, but Options.Committed is still called after the commit.
	w := &writeTransaction{ctx: ctx, e: e, c: c, now: e.clock(), double: consistency.Double}
	err := e.store.Update(ctx, func(tx disk.Tx) error {
		if err := w.beginWrite(tx); err != nil {
			return err
		}
		tx.OnCommit(w.reportChanges)
		return do(w)
	})
	if err != nil && !errors.Is(err, errRolledBack) {
		return WriteResult{}, err
	}
	if err == nil && w.grown != 0 {
		if err := e.splitFullRanges(ctx, c); err != nil {
			return WriteResult{}, err
		}
	}
	return w.out, nil
}

// A writeTransaction is the state of one write transaction.
type writeTransaction struct {
	ctx     context.Context //nolint:containedctx // context of the request
	e       *Engine
	c       *Container
	pk      Partition
	now     time.Time
	double  bool
	tx      disk.Tx
	version uint64   // number of the newest write so far
	grown   int64    // bytes of added documents minus bytes of removed ones
	broken  error    // first error for an unreadable document, which makes the transaction fail
	changes []Change // changes to pass to Options.Committed
	out     WriteResult
}

func (w *writeTransaction) beginWrite(tx disk.Tx) error {
	// The container may have been deleted after the request was routed, and a new one of the same name created.
	if tx.Get(containerPrefix('N', w.c.number)) == nil {
		return notFound("container", w.c.ID)
	}
	w.tx = tx
	w.version = decodeNumber(tx.Get(counterKey))
	w.out, w.changes = WriteResult{Failed: -1, Session: w.version}, nil
	return nil
}

// reportChanges calls Options.Committed. It runs after the commit, in the order of the commits.
func (w *writeTransaction) reportChanges() {
	w.e.noteCommit()
	w.e.sizeOfContainer(w.c.number).Add(w.grown)
	if w.e.committed != nil {
		w.e.committed(w.changes)
	}
}

// applyAll executes the operations. If one fails, all are rolled back.
func (w *writeTransaction) applyAll(pk Partition, ops []Op) error {
	w.pk = pk
	w.out.Results = make([]Result, len(ops))
	before, grown := w.version, w.grown
	for i := range ops {
		r := w.applyOp(&ops[i])
		if w.broken != nil {
			return w.broken
		}
		w.out.Results[i] = r
		w.out.Charge += r.Charge
		if r.Status >= 300 {
			w.out.Failed = i
			for j := range ops {
				if j != i {
					w.out.Results[j] = Result{Status: http.StatusFailedDependency}
				}
			}
			return errRolledBack
		}
	}
	return w.recordUsage(before, grown)
}

// recordUsage updates the stored size and last write of the partition.
func (w *writeTransaction) recordUsage(before uint64, grown int64) error {
	if w.version == before {
		return nil
	}
	key := partitionKey(w.c.number, w.pk)
	u := readUsage(w.tx.Get(key))
	u.version = w.version
	u.bytes += w.grown - grown
	if u.bytes > maxPartitionBytes && w.grown > grown {
		return &Error{Status: http.StatusForbidden, SubStatus: 1014, Message: "Partition key reached maximum size of 20 GB"}
	}
	w.tx.Put(key, u.encodeUsage())
	w.tx.Put(counterKey, appendNumber(w.version))
	w.out.Session = w.version
	return nil
}

// applyEach executes each operation. A failed operation must not have written anything.
func (w *writeTransaction) applyEach(ops []PlacedOp) error {
	w.out.Results = make([]Result, len(ops))
	for i := range ops {
		before, grown := w.version, w.grown
		w.pk = ops[i].Partition
		r := w.applyOp(&ops[i].Op)
		if w.broken != nil {
			return w.broken
		}
		if r.Status >= 300 && w.out.Failed < 0 {
			w.out.Failed = i
		}
		w.out.Results[i] = r
		w.out.Charge += r.Charge
		if err := w.recordUsage(before, grown); err != nil {
			return err
		}
	}
	return nil
}
