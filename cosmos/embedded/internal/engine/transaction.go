package engine

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// errRolledBack ends the transaction of a batch that has to leave no trace.
// The results tell what happened.
var errRolledBack = errors.New("rolled back")

// Write does all of ops in one logical partition, or none of them.
func (e *Engine) Write(ctx context.Context, c *Container, pk Partition, ops []Op, consistency Consistency) (WriteResult, error) {
	return e.runWrite(ctx, c, consistency, func(w *writeTransaction) error { return w.applyAll(pk, ops) })
}

// A Placed is an operation in a logical partition.
type PlacedOp struct {
	Op
	Partition Partition
}

// WriteEach does every one of ops that can be done, in any partitions. They
// share one transaction, but no operation depends on another.
func (e *Engine) WriteEach(ctx context.Context, c *Container, ops []PlacedOp, consistency Consistency) (WriteResult, error) {
	return e.runWrite(ctx, c, consistency, func(w *writeTransaction) error { return w.applyEach(ops) })
}

func (e *Engine) runWrite(ctx context.Context, c *Container, consistency Consistency, do func(*writeTransaction) error) (WriteResult, error) {
	// The transaction writes into w. It is only looked at when the
	// transaction is over: a caller that gives up gets an error instead, but
	// Options.Committed is called nevertheless.
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

// A writer is one write transaction.
type writeTransaction struct {
	ctx     context.Context //nolint:containedctx // that of the request
	e       *Engine
	c       *Container
	pk      Partition
	now     time.Time
	double  bool
	tx      disk.Tx
	version uint64   // of the newest write so far
	grown   int64    // bytes of documents that came, less those that went
	broken  error    // a document that cannot be read
	changes []Change // for Options.Committed
	out     WriteResult
}

func (w *writeTransaction) beginWrite(tx disk.Tx) error {
	// The container may have gone since the request was routed, and another
	// of the same name may have come.
	if tx.Get(containerPrefix('N', w.c.number)) == nil {
		return notFound("container", w.c.ID)
	}
	w.tx = tx
	w.version = decodeNumber(tx.Get(counterKey))
	w.out, w.changes = WriteResult{Failed: -1, Session: w.version}, nil
	return nil
}

// reportChanges runs after the commit, in the order of the commits.
func (w *writeTransaction) reportChanges() {
	w.e.noteCommit()
	w.e.sizeOfContainer(w.c.number).Add(w.grown)
	if w.e.tell != nil {
		w.e.tell(w.changes)
	}
}

// applyAll does the operations until one fails, which undoes them all.
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

// recordUsage notes what the partition was written.
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

// applyEach relies on that an operation that fails has written nothing.
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
