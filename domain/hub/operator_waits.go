package hub

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A NoticeReport is what waits in the outbox for an actor.
type NoticeReport struct {
	Waiting []domain.Notice // the first ones of each group and audience; there may be more
	Stuck   StuckNotices    // that this node could not deliver
}

// Notices returns what waits in the outbox for an actor.
func (o *Operator) Notices(ctx context.Context, actor domain.ActorID) (report NoticeReport, err error) {
	courier := o.hub.opts.Courier
	if courier == nil {
		return report, nil
	}
	report.Waiting, err = courier.outbox.Notices(ctx, actor)
	report.Stuck = courier.StuckOf(actor)
	return report, err
}

// A PendingRequest is a request to a domain for the content of a bundle, which this node waits for.
type PendingRequest struct {
	Until time.Time // when the domain has to be done
	Peeks int       // that wait for it
}

// PendingRequest returns the request for the content of a bundle that this node waits for, and false if
// there is none.
func (o *Operator) PendingRequest(actor domain.ActorID, id domain.BundleID) (PendingRequest, bool) {
	q := o.hub.fetches
	q.mu.Lock()
	defer q.mu.Unlock()
	i, isPending := q.byKey[fetchKey{actor, id}]
	if !isPending {
		return PendingRequest{}, false
	}
	return PendingRequest{i.until, i.waiting}, true
}
