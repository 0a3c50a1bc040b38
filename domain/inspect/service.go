package inspect

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/filter"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

// Ports are the stores that a Service reads.
type Ports struct {
	Definitions repository.Definitions
	Cursors     repository.Cursors
	Streams     repository.Streams
	Receivers   delivery.Receivers
	Caller      Caller
}

// A Receiver contains all data needed for a call.
type Receiver = delivery.Receiver

// Options configure a Service. The zero value is valid.
type Options struct {
	Clock  func() time.Time // default time.Now
	Random func() string    // returns the random part of a test message's id; default: 26 letters and digits
}

// A Service answers queries about deliveries. It is safe for concurrent use.
type Service struct {
	ports Ports
	opts  Options
	tests testLimiter
}

// New returns a Service that reads ports.
func New(ports Ports, opts Options) *Service {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Random == nil {
		opts.Random = rand.Text
	}
	return &Service{ports: ports, opts: opts}
}

// A Reader is the sender of a query. An actor may read its own subscriptions, an operator may read all.
type Reader struct {
	Actor      domain.ActorID
	IsOperator bool
}

// A snapshot is the stored state of a subscription when it was read.
type snapshot struct {
	definition *repository.Definition
	stream     domain.StreamName
	standing   domain.Standing
	receiver   *subscribe.Delivery // state of calls to the receiver
	filter     *filter.Expression  // nil if the subscription has no filter
	now        time.Time
}

// findReadable returns a subscription that the reader may read. Otherwise it fails with NotFound, so that a reader
// cannot learn whether the subscription exists.
func (s *Service) findReadable(ctx context.Context, reader Reader, id domain.SubscriptionID) (*repository.Definition, error) {
	d, err := s.ports.Definitions.Subscription(ctx, id)
	if domain.KindOf(err) == domain.NotFound || err == nil && !reader.IsOperator && d.Owner != reader.Actor {
		return nil, domain.Errorf(domain.NotFound, "there is no subscription %s", id)
	}
	return d, err
}

// readSnapshot reads a subscription and its cursor. If there is no cursor yet, the standing is zero, as if the cursor
// had reached no entry.
func (s *Service) readSnapshot(ctx context.Context, reader Reader, id domain.SubscriptionID) (*snapshot, error) {
	d, err := s.findReadable(ctx, reader, id)
	if err != nil {
		return nil, err
	}
	found := &snapshot{definition: d, now: s.opts.Clock()}
	if found.stream, err = d.Stream(); err != nil {
		return nil, err
	}
	if found.filter, _, err = filter.CompileSubscription(&d.Subscription); err != nil {
		return nil, err
	}
	found.standing, err = s.ports.Cursors.Standing(ctx, id.Cursor())
	if err != nil && domain.KindOf(err) != domain.NotFound {
		return nil, err
	}
	found.receiver = subscribe.DeliveryOf(d, &found.standing, found.now)
	return found, nil
}

// mayBeCalled reports whether the receiver may be called now.
func (n *snapshot) mayBeCalled() bool {
	return n.receiver.Until.IsZero() && (n.receiver.State == subscribe.DeliveryActive || n.receiver.State == subscribe.DeliveryFailing)
}

// matches reports whether the current filter selects an entry.
func (n *snapshot) matches(e *repository.Entry) bool {
	if n.filter == nil {
		return true
	}
	passes, err := n.filter.Matches(filter.MetadataOf(&e.Message))
	return passes && err == nil
}
