package outcome

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/filter"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

// MaxWait is the limit for the time that a sender waits.
const MaxWait = 10 * time.Second

// MaxMessages is the limit for the messages of a call for which a sender waits.
const MaxMessages = repository.MaxAppend

// A State is the outcome of a message for a subscription, in one word.
type State string

// The states of a message.
const (
	Delivered State = "delivered" // the receiver has accepted it
	Failed    State = "failed"    // the only attempt has failed; it is a dead letter
	Filtered  State = "filtered"  // the filter does not match it
	Pending   State = "pending"   // it is not known yet
	Unknown   State = "unknown"   // it was sent before and has ended, and its outcome is no longer stored
)

// An Outcome is the result of delivering a message to a subscription.
type Outcome struct {
	Message      int // index of the message in the call
	Subscription domain.SubscriptionID
	State        State
	Status       int // the status of the receiver's answer; 0: no answer, or no longer stored
}

// Ports are the stores and functions that a Service uses.
type Ports struct {
	Definitions repository.Definitions
	Cursors     repository.Cursors
	Streams     repository.Streams
	// Settled returns a channel that is closed when this node has stored the next settlement of a
	// cursor.
	Settled func(domain.CursorID) <-chan struct{}
	Clock   func() time.Time
}

// A Service is safe for concurrent use.
type Service struct {
	ports Ports
	looks looks
}

// New returns a Service.
func New(ports Ports) *Service {
	s := &Service{ports: ports}
	s.looks.read = ports.Cursors.Standing
	return s
}

// A Wait is the wait of a sender. It keeps no messages in memory.
type Wait struct {
	service *Service
	all     []*Outcome
	cursors []*cursorWait
}

// Begin returns the wait for messages that were published, nil if no subscription is sync.
func (s *Service) Begin(ctx context.Context, stream domain.StreamName, messages []domain.Message, awaited []publish.Awaited) *Wait {
	byCursor := make(map[domain.CursorID]*cursorWait)
	w := &Wait{service: s}
	for _, a := range awaited {
		for _, id := range a.Sync {
			c, isKnown := byCursor[id]
			if !isKnown {
				c = s.newCursorWait(ctx, stream, id)
				byCursor[id] = c
				if c != nil {
					w.cursors = append(w.cursors, c)
				}
			}
			if c == nil {
				continue
			}
			o := &Outcome{Message: a.Index, Subscription: c.subscription, State: Pending}
			w.all = append(w.all, o)
			switch {
			case !c.matchesFilter(&messages[a.Index]):
				o.State = Filtered
			case c.definition != nil:
				c.open = append(c.open, &openDelivery{outcome: o, Appended: a.Appended})
			}
		}
	}
	if len(w.all) == 0 {
		return nil
	}
	return w
}

// newCursorWait returns a wait for a cursor, still without messages. It returns nil if the
// cursor should not be listed. If the subscription cannot be read, the wait has no definition.
func (s *Service) newCursorWait(ctx context.Context, stream domain.StreamName, id domain.CursorID) *cursorWait {
	c := &cursorWait{service: s, id: id}
	subscription, err := domain.SubscriptionOf(id)
	if err != nil {
		return nil
	}
	c.subscription = subscription
	d, err := s.ports.Definitions.Subscription(ctx, subscription)
	switch {
	case domain.KindOf(err) == domain.NotFound, err == nil && !d.IsSync:
		s.removeMistake(ctx, stream, subscription)
		return nil
	case err != nil:
		return c
	}
	if c.filter, _, err = filter.CompileSubscription(&d.Subscription); err == nil {
		c.definition = d
	}
	return c
}

// removeMistake removes a subscription from the list of a stream. If that fails, the next
// sender repeats it.
func (s *Service) removeMistake(ctx context.Context, stream domain.StreamName, id domain.SubscriptionID) {
	if s.ports.Streams.RemoveSync(ctx, stream, id.Cursor()) != nil {
		return
	}
	// The owner may have made the subscription sync meanwhile.
	if d, err := s.ports.Definitions.Subscription(ctx, id); err == nil {
		_ = subscribe.ListSync(ctx, s.ports.Streams, d)
	}
}

// Outcomes returns the outcomes of all messages, once they are known or ctx ends, in the order
// of the messages. It does not wait for outcomes that cannot be known before MaxWait, such as
// those of a paused subscription.
func (w *Wait) Outcomes(ctx context.Context) []Outcome {
	ctx, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	var g sync.WaitGroup
	for _, c := range w.cursors {
		g.Go(func() { c.run(ctx) })
	}
	g.Wait()
	all := make([]Outcome, len(w.all))
	for i, o := range w.all {
		all[i] = *o
	}
	return all
}
