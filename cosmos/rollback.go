package cosmos

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// lease is how long an intent of another process is left alone. It keeps two
// writers from undoing each other's work for ever; nothing else depends on it.
const (
	lease     = 2 * time.Second
	leasePoll = 200 * time.Millisecond
)

// A sighting is when an intent was first seen.
type sighting struct {
	intent string
	since  time.Time
}

// rollback undoes the intent in w.head, or waits for its owner to go on, and
// returns errMoved: whatever it did, the caller starts over.
func (w *writer) rollback(ctx context.Context, o *operation) error {
	it := w.head.Intent
	if !it.Aborted {
		if w.mayBeAlive(it) {
			w.head = nil
			if !sleep(ctx, leasePoll+w.r.jitter(leasePoll)) {
				return ctx.Err()
			}
			return w.stillWaiting(ctx, o)
		}
		if err := w.writeHead(ctx, o, w.head.claimed()); err != nil {
			return err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(drawersPerBundle)
	for i := range it.Parts {
		p := &it.Parts[i]
		g.Go(func() error { return o.sealAt(gctx, w.recipient.String()+"|"+p.Cabinet, p, it.ID) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := w.writeHead(ctx, o, w.head.cleared()); err != nil {
		return err
	}
	w.r.metrics.repairs.WithLabelValues("rollback").Inc()
	w.r.opts.Logger.InfoContext(ctx, "rolled back an unfinished save",
		"recipient", w.recipient.String(), "intent", it.ID, "owner", it.Owner, "first", int64(it.First), "last", int64(it.Last))
	return errMoved
}

// mayBeAlive reports whether the owner of it is to be given time. This process'
// own Saves queue behind each other, so an intent of its own that it meets is
// one that it has given up.
func (w *writer) mayBeAlive(it *intent) bool {
	if it.Owner == w.r.owner || w.r.opts.Exclusive {
		return false
	}
	now := time.Now()
	if w.foreign.intent != it.ID {
		w.foreign = sighting{it.ID, now}
	}
	return now.Sub(w.foreign.since) < lease+w.r.jitter(lease/4)
}

// stillWaiting looks at the head again without spending the operation's budget:
// waiting for somebody who is at work is not a failure.
func (w *writer) stillWaiting(ctx context.Context, o *operation) error {
	for {
		if err := w.readHead(ctx, o); err != nil {
			return err
		}
		it := w.head.Intent
		if it == nil || it.Aborted || !w.mayBeAlive(it) {
			return errMoved
		}
		w.head = nil
		if !sleep(ctx, leasePoll+w.r.jitter(leasePoll)) {
			return ctx.Err()
		}
	}
}
