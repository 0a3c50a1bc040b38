package cosmos

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
)

// A process does not roll back an intent of another process during its lease. The lease doubles with every
// rollback since the last commit, so that rollbacks become rarer if the store is so slow that Saves outlast
// the lease. A commit does not reset the lease while another process waits. Otherwise the process that is
// rolled back each time would always have the shortest lease. Correctness does not depend on the lease.
const (
	lease      = 2 * time.Second
	maxDoubled = 3
	leasePoll  = 200 * time.Millisecond
)

// A firstSeen records when a writer first read a head with an intent.
type firstSeen struct {
	intent string
	since  time.Time
}

// resolveIntent handles an intent in w.head that this round has not written: it waits for the owner of the
// intent, or rolls the intent back. After that the caller reads the head and starts again.
func (w *recipientWriter) resolveIntent(ctx context.Context, c *call) error {
	if w.mayBeAlive() {
		return w.awaitIntent(ctx, c)
	}
	return w.rollBackIntent(ctx, c)
}

// mayBeAlive reports whether the owner of the intent in w.head still has its lease. It is false for an
// intent of this process: its Saves run one after another, so the Save of that intent has ended.
func (w *recipientWriter) mayBeAlive() bool {
	it := w.head.Intent
	if it == nil || it.Aborted || it.Owner == w.r.owner || w.r.opts.Exclusive {
		return false
	}
	now := time.Now()
	if w.foreign.intent != it.ID {
		w.foreign = firstSeen{it.ID, now}
	}
	patience := lease << min(w.head.Undone, maxDoubled)
	return now.Sub(w.foreign.since) < patience+w.r.client.Jitter(patience/4)
}

// awaitIntent reads the head until the intent is removed or its lease has expired. It does not use the
// retry budget of the call, because waiting for an active owner is not a failure. It marks the head as
// wanted, so that the owner's commit does not reserve for its next Saves.
func (w *recipientWriter) awaitIntent(ctx context.Context, c *call) error {
	for w.mayBeAlive() {
		if w.head.Wanted == "" {
			// A crash after this write leaves the mark, which is removed with the intent. The mark costs
			// the owner one reservation.
			if err := w.writeHead(ctx, c, w.head.markWanted(w.r.owner)); err != nil && !errors.Is(err, client.ErrStale) && !errors.Is(err, errIntentUnchanged) {
				return err
			}
		}
		w.head = nil
		if !client.Sleep(ctx, leasePoll/4+w.r.client.Jitter(leasePoll/4)) {
			return ctx.Err()
		}
		if err := w.readHead(ctx, c); err != nil {
			return err
		}
	}
	return client.ErrStale
}

// A rollbackProgress remembers which drawers of an intent were sealed, so that an attempt of a rollback of
// many drawers continues the work of the previous attempt.
type rollbackProgress struct {
	intent string
	mu     sync.Mutex
	sealed map[string]bool // by id of the drawer
}

// rollBackIntent rolls back the intent in w.head. It claims the intent, so that the owner cannot commit;
// seals the drawers of the intent, so that the owner cannot count; and removes the intent.
func (w *recipientWriter) rollBackIntent(ctx context.Context, c *call) error {
	it := w.head.Intent
	if !it.Aborted {
		// A crash after this write leaves the claimed intent. The owner cannot commit it, and the next
		// writer continues the rollback.
		if err := w.writeHead(ctx, c, w.head.claimIntent()); err != nil {
			return asStale(err)
		}
	}
	if w.rollback.intent != it.ID {
		w.rollback.intent, w.rollback.sealed = it.ID, make(map[string]bool)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for i := range it.Parts {
		p := &it.Parts[i]
		if w.rollback.hasDrawer(p.Drawer) {
			continue
		}
		g.Go(func() error {
			// Each drawer has its own budget of retries, because an intent may have a thousand drawers. A
			// crash after this write leaves some drawers sealed; the next writer seals the remaining ones.
			err := w.r.beginCall("rollback").sealAt(gctx, w.recipient.String()+"|"+p.Cabinet, p, it.ID)
			if err == nil {
				w.rollback.addDrawer(p.Drawer)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// A crash after this write leaves a complete rollback. Only the log line and the metric are
	// missing.
	if err := w.writeHead(ctx, c, w.head.clearIntent()); err != nil {
		return asStale(err)
	}
	w.rollback.intent, w.rollback.sealed = "", nil
	w.r.metrics.repairs.WithLabelValues(rollbackRepair).Inc()
	w.r.opts.Logger.InfoContext(ctx, "rolled back an unfinished save",
		"recipient", w.recipient.String(), "intent", it.ID, "owner", it.Owner, "first", int64(it.First), "last", int64(it.Last))
	return client.ErrStale
}

// asStale returns client.ErrStale instead of errIntentUnchanged: a rollback reads a changed head again.
func asStale(err error) error {
	if errors.Is(err, errIntentUnchanged) {
		return client.ErrStale
	}
	return err
}

func (u *rollbackProgress) hasDrawer(drawer string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sealed[drawer]
}

func (u *rollbackProgress) addDrawer(drawer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sealed[drawer] = true
}
