package outcome

import (
	"context"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/filter"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

// readInterval is the time after which a cursor is read again, even if this node has stored no
// settlement, because another node may serve the cursor.
const readInterval = 250 * time.Millisecond

// A cursorWait waits until a sender's messages are settled for one subscription.
type cursorWait struct {
	service      *Service
	id           domain.CursorID
	subscription domain.SubscriptionID
	definition   *repository.Definition // nil: the subscription could not be read
	filter       *filter.Expression     // nil: the subscription has no filter
	open         []*openDelivery
}

// An openDelivery is a delivery whose outcome is not known yet.
type openDelivery struct {
	repository.Appended
	outcome *Outcome
	misses  int // number of reads in which the delivery had ended, but its outcome was unknown
}

// matchesFilter reports whether the subscription's filter matches a message.
func (c *cursorWait) matchesFilter(m *domain.Message) bool {
	if c.filter == nil {
		return true
	}
	passes, err := c.filter.Matches(filter.MetadataOf(m))
	return passes && err == nil
}

// run reads the cursor until all outcomes are known, no further outcome can arrive in time, or ctx
// ends.
func (c *cursorWait) run(ctx context.Context) {
	if len(c.open) == 0 {
		return
	}
	l := c.service.reads.join(c.id)
	defer c.service.reads.leave(l)
	timer := time.NewTimer(readInterval)
	defer timer.Stop()
	var seen *cursorRead
	for hasSettled := true; ; {
		settled := c.service.ports.Settled(c.id) // get the channel before the read, so that no settlement is missed
		seen = l.nextRead(ctx, seen, hasSettled)
		if c.observeOutcomes(ctx, seen) {
			return
		}
		timer.Reset(readInterval)
		select {
		case <-ctx.Done():
			return
		case <-settled:
			hasSettled = true
		case <-timer.C:
			hasSettled = false
		}
	}
}

// observeOutcomes records the outcomes that a read of the cursor contains. It reports whether the
// wait has ended.
func (c *cursorWait) observeOutcomes(ctx context.Context, l *cursorRead) bool {
	if kind := domain.KindOf(l.err); kind == domain.Damaged || kind == domain.NewerFormat {
		return true
	}
	if l.err != nil {
		return false // this read failed, but the next one may succeed
	}
	c.open = slices.DeleteFunc(c.open, func(d *openDelivery) bool { return c.recordOutcome(ctx, d, &l.standing) })
	return len(c.open) == 0 || !c.mayBeCalled(ctx, &l.standing)
}

// mayBeCalled reports whether the receiver may be called before ctx ends.
func (c *cursorWait) mayBeCalled(ctx context.Context, s *domain.Standing) bool {
	now := c.service.ports.Clock()
	switch d := subscribe.DeliveryOf(c.definition, s, now); d.State {
	case subscribe.DeliveryPaused, subscribe.DeliveryGone, subscribe.DeliveryClosed:
		return false
	default:
		end, hasEnd := ctx.Deadline()
		return !hasEnd || d.Until.Sub(now) < time.Until(end)
	}
}

// recordOutcome records a delivery's outcome, and reports whether it is known.
func (c *cursorWait) recordOutcome(ctx context.Context, d *openDelivery, s *domain.Standing) bool {
	e := d.Position.EntryID
	isOpen := slices.ContainsFunc(s.Open, func(p domain.Position) bool { return p.EntryID == e })
	if e.Number >= s.Position(e.Priority).Number || isOpen {
		return false
	}
	last := lastAttempt(s.Recent, e)
	if last != nil && isSuccess(last) {
		return d.setOutcome(Delivered, last.Status)
	}
	r, err := c.service.ports.Cursors.Retry(ctx, c.id, e)
	switch {
	case err == nil && r.Dead:
		last = lastAttempt(r.History, e)
		return d.setOutcome(Failed, statusOf(last))
	case err == nil, domain.KindOf(err) != domain.NotFound:
		return false // the delivery waits for a further attempt, because it failed before the subscription was sync; or the read of its retry failed
	case last != nil:
		return d.setOutcome(Failed, last.Status) // the dead letter is no longer stored
	case d.Outcome != repository.AppendedNow || d.Published.Before(c.definition.Created):
		return d.setOutcome(Unknown, 0)
	}
	// The delivery has ended, its attempt is no longer stored, and no dead letter was found. So it
	// succeeded, unless the read of the dead letter was stale. A second read must confirm this.
	if d.misses++; d.misses < 2 {
		return false
	}
	return d.setOutcome(Delivered, 0)
}

func (d *openDelivery) setOutcome(state State, status int) bool {
	d.outcome.State, d.outcome.Status = state, status
	return true
}

// lastAttempt returns the last stored attempt to deliver an entry, or nil.
func lastAttempt(all []domain.Attempt, e domain.EntryID) *domain.Attempt {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Entry == e {
			return &all[i]
		}
	}
	return nil
}

// isSuccess reports whether the receiver accepted the message in an attempt.
func isSuccess(a *domain.Attempt) bool {
	return a.Error == "" && (&domain.Policy{}).IsSuccess(domain.Answer{Status: a.Status})
}

func statusOf(a *domain.Attempt) int {
	if a == nil {
		return 0
	}
	return a.Status
}
