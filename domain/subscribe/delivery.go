package subscribe

import (
	"context"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// The states of a Delivery.
const (
	DeliveryActive  = "active"  // the receiver is called
	DeliveryPaused  = "paused"  // the owner paused the subscription
	DeliveryGone    = "gone"    // the receiver responded with 410 Gone; the subscription is paused until it is resumed
	DeliveryHeld    = "held"    // the receiver requested a pause with Retry-After
	DeliveryFailing = "failing" // the last calls failed
	DeliveryClosed  = "closed"  // the subscription was deleted
)

// A Delivery is the state of the calls of a subscription. It may be outdated: a result is
// stored up to some seconds after its call, and the read may be stale.
type Delivery struct {
	State    string
	Until    time.Time // no calls are made before this time; zero: no limit
	Failures int       // consecutive failures
	Waiting  int       // number of deliveries that are being called or wait for a retry
	Counters domain.Counters
	Warnings []domain.Warning // set only by Get
}

// readDelivery returns the state of the calls of a subscription. If the cursor does not exist yet,
// all counters are 0.
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
		return w.Kind == domain.ReceiverFailing && found.Failures == 0 // the owner resumed the subscription, which the cursor does not show yet
	})
	return found, nil
}

// DeliveryOf returns the state of the calls for a stored definition and standing. If the owner has
// just paused or resumed the subscription, the result shows the change, although the node that
// serves the cursor may not know of the change yet.
func DeliveryOf(d *repository.Definition, s *domain.Standing, now time.Time) *Delivery {
	found := &Delivery{State: DeliveryActive, Waiting: s.Outstanding(), Counters: s.Counters}
	isResumed := d.Resumed > s.Resumed // the owner resumed the subscription after s was stored, so the pause, hold and breaker in s have ended
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
	case s.State == domain.Paused && d.Resumed < s.Resumed: // d is a stale read, older than s
		found.State = DeliveryPaused
	case s.Hold.After(now):
		found.State = DeliveryHeld
	case s.Failures > 0:
		found.State = DeliveryFailing
	}
	return found
}
