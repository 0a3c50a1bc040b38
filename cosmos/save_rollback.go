package cosmos

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
)

// A process does not roll back an intent of another process during its lease. The lease doubles with
// every rollback since the last commit, so that rollbacks become rarer if Saves take longer than the
// lease. While another process waits, a commit does not reset the lease; otherwise a slow process would be
// rolled back again and again. Correctness does not depend on the lease.
const (
	lease      = 2 * time.Second
	maxDoubled = 3
	leasePoll  = 200 * time.Millisecond
)

// A firstSeen records when a writer first read a head with a certain intent.
type firstSeen struct {
	intent string
	since  time.Time
}

// resolveIntent handles an intent in w.head that this round has not written. It waits for the owner of
// the intent, or rolls the intent back. Then the caller reads the head and starts again.
func (w *recipientWriter) resolveIntent(ctx context.Context, c *call) error {
	if w.mayBeAlive() {
		return w.awaitIntent(ctx, c)
	}
	return w.rollBackIntent(ctx, c)
}

// mayBeAlive reports whether the lease of the intent in w.head has not expired. It returns false for an
// intent of this process, because its Saves run sequentially, so the Save of that intent has ended.
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

// awaitIntent reads the head until the intent is removed or its lease has expired. Waiting for an active
// owner is not a failure, so these requests do not count as retries. It marks the head as wanted, so that
// the owner's commit does not store an intent for the owner's next Saves.
func (w *recipientWriter) awaitIntent(ctx context.Context, c *call) error {
	for w.mayBeAlive() {
		if w.head.Wanted == "" {
			// A crash after this write leaves the mark, which is removed together with the intent.
			// Because of the mark, the owner needs one more write.
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

// A rollbackProgress records which drawers of an intent were sealed, so that a repeated attempt to roll
// back many drawers does not seal them again.
type rollbackProgress struct {
	intent string
	mu     sync.Mutex
	sealed map[string]bool // drawers that were sealed, by id
}

// rollBackIntent rolls back the intent in w.head. It claims the intent, so that the owner cannot commit.
// It seals the drawers of the intent, so that the owner cannot raise their counts. Then it removes the
// intent.
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
			// Each drawer has its own limit for retries, because an intent may have a thousand drawers.
			// If the node crashes after this write, some drawers are sealed, and the next writer seals
			// the remaining ones.
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
	// If the node crashes after this write, the rollback is complete. It is only missing from the log and
	// the metrics.
	if err := w.writeHead(ctx, c, w.head.clearIntent()); err != nil {
		return asStale(err)
	}
	w.rollback.intent, w.rollback.sealed = "", nil
	w.r.metrics.repairs.WithLabelValues(rollbackRepair).Inc()
	w.r.opts.Logger.InfoContext(ctx, "rolled back an unfinished save",
		"recipient", w.recipient.String(), "intent", it.ID, "owner", it.Owner, "first", int64(it.First), "last", int64(it.Last))
	return client.ErrStale
}

// asStale replaces errIntentUnchanged with client.ErrStale, because a rollback must read a changed head
// again. It returns any other error unchanged.
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
