package hub

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A NoticeReport describes the notices in the outbox for an actor.
type NoticeReport struct {
	Waiting []domain.Notice // first notices of each group and audience; there may be more
	Stuck   StuckNotices    // notices that this node could not deliver
}

// Notices returns the notices in the outbox for an actor.
func (o *Operator) Notices(ctx context.Context, actor domain.ActorID) (report NoticeReport, err error) {
	relay := o.hub.opts.NoticeRelay
	if relay == nil {
		return report, nil
	}
	report.Waiting, err = relay.outbox.Notices(ctx, actor)
	report.Stuck = relay.StuckOf(actor)
	return report, err
}

// A PendingRequest is a content request whose reply this node is waiting for.
type PendingRequest struct {
	Until time.Time // deadline for the reply
	Peeks int       // number of Peeks that wait for the content
}

// PendingRequest returns the pending content request of this node for a bundle. It returns false if none exists.
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
