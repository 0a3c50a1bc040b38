package subscribe

import (
	"context"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// The values of Delivery.State.
const (
	DeliveryActive  = "active"  // the receiver is called
	DeliveryPaused  = "paused"  // the owner paused the subscription
	DeliveryGone    = "gone"    // the receiver responded with 410 Gone, so the subscription is paused until its owner resumes it
	DeliveryHeld    = "held"    // the receiver requested a pause with the header Retry-After
	DeliveryFailing = "failing" // the last calls failed
	DeliveryClosed  = "closed"  // the subscription was deleted
)

// A Delivery describes the calls for a subscription. It may be outdated, because a result is stored
// up to some seconds after its call, and because the read may be stale.
type Delivery struct {
	State    string
	Until    time.Time // the receiver is not called before this time; zero: it may be called now
	Failures int       // consecutive failures
	Waiting  int       // number of deliveries that are being called or wait for a retry
	Counters domain.Counters
	Warnings []domain.Warning // warnings about deliveries; set only by Get
}

// readDelivery returns the state of the calls for a subscription. If the subscription's cursor does
// not exist yet, all counters are 0.
func (s *Service) readDelivery(ctx context.Context, d *repository.Definition) (*Delivery, error) {
	standing, err := s.ports.Cursors.Standing(ctx, d.ID.Cursor())
	if err != nil && domain.KindOf(err) != domain.NotFound {
		return nil, err
	}
	now := s.opts.Clock()
	found := DeliveryOf(d, &standing, now)
	expires, err := delivery.Expires(ctx, s.ports.Streams, s.ports.Cursors, d.ID.Cursor(), &standing)
	if err != nil {
		return nil, err
	}
	found.Warnings = slices.DeleteFunc(standing.Warnings(expires, now), func(w domain.Warning) bool {
		return w.Kind == domain.ReceiverFailing && found.Failures == 0 // the owner has resumed the subscription, but the stored cursor does not include this yet
	})
	return found, nil
}

// DeliveryOf returns the state of the calls for a subscription, from its stored definition and
// standing. If the owner has just paused or resumed the subscription, the result includes this
// change, even if the node that serves the cursor does not know of it yet.
func DeliveryOf(d *repository.Definition, s *domain.Standing, now time.Time) *Delivery {
	found := &Delivery{State: DeliveryActive, Waiting: s.Outstanding(), Counters: s.Counters}
	isResumed := d.Resumed > s.Resumed // the owner resumed the subscription after s was stored, which ended the pause, hold and breaker in s
	if !isResumed {
		found.Failures = s.Failures
		for _, t := range []time.Time{s.Hold, s.BreakerTo} {
			if t.After(now) && t.After(found.Until) {
				found.Until = t
			}
		}
	}
	switch {
	case s.State == domain.Closed:
		found.State = DeliveryClosed
	case !isResumed && s.IsGone():
		found.State = DeliveryGone
	case d.Paused:
		found.State = DeliveryPaused
	case isResumed:
	case s.State == domain.Paused && d.Resumed < s.Resumed: // d comes from a stale read and is older than s
		found.State = DeliveryPaused
	case s.Hold.After(now):
		found.State = DeliveryHeld
	case s.Failures > 0:
		found.State = DeliveryFailing
	}
	return found
}
