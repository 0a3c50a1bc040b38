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

// MaxWait is the maximum time for which a sender waits.
const MaxWait = 10 * time.Second

// MaxMessages is the maximum number of messages in a call whose sender waits.
const MaxMessages = repository.MaxAppend

// A State says what is known about the delivery of a message to a subscription.
type State string

// The values of State.
const (
	Delivered State = "delivered" // the receiver accepted the message
	Failed    State = "failed"    // the only attempt failed, and the delivery is a dead letter
	Filtered  State = "filtered"  // the subscription's filter does not match the message
	Pending   State = "pending"   // the outcome is not known yet
	Unknown   State = "unknown"   // the message was sent before, and its outcome is no longer stored
)

// An Outcome is the result of delivering one message to one subscription.
type Outcome struct {
	Message      int // index of the message in the sender's call
	Subscription domain.SubscriptionID
	State        State
	Status       int // HTTP status with which the receiver responded; 0: no response, or the status is no longer stored
}

// Ports contains the stores and functions that a Service uses.
type Ports struct {
	Definitions repository.Definitions
	Cursors     repository.Cursors
	Streams     repository.Streams
	// Settled returns a channel for a cursor. The channel is closed when this node has stored the
	// cursor's next settlement.
	Settled func(domain.CursorID) <-chan struct{}
	Clock   func() time.Time
}

// A Service lets senders wait for outcomes. It is safe for concurrent use.
type Service struct {
	ports Ports
	reads cursorReads
}

// New returns a Service.
func New(ports Ports) *Service {
	s := &Service{ports: ports}
	s.reads.read = ports.Cursors.Standing
	return s
}

// A Wait lets a sender wait for the outcomes of its messages. It does not retain the messages.
type Wait struct {
	service *Service
	all     []*Outcome
	cursors []*cursorWait
}

// Begin returns a Wait for published messages, or nil if no subscription is sync.
func (s *Service) Begin(ctx context.Context, stream domain.StreamName, messages []domain.Message, awaited []publish.AwaitedMessage) *Wait {
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

// newCursorWait returns a wait for a cursor, to which no messages were added yet. It returns nil if
// the subscription is not sync. If the subscription cannot be read, the wait has no definition.
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
		s.removeFromList(ctx, stream, subscription)
		return nil
	case err != nil:
		return c
	}
	if c.filter, _, err = filter.CompileSubscription(&d.Subscription); err == nil {
		c.definition = d
	}
	return c
}

// removeFromList removes a subscription's cursor from a stream's sync list. If this fails, the next
// sender repeats it.
func (s *Service) removeFromList(ctx context.Context, stream domain.StreamName, id domain.SubscriptionID) {
	if s.ports.Streams.RemoveSync(ctx, stream, id.Cursor()) != nil {
		return
	}
	// The owner may have made the subscription sync since it was read. If so, list the cursor
	// again.
	if d, err := s.ports.Definitions.Subscription(ctx, id); err == nil {
		_ = subscribe.ListSync(ctx, s.ports.Streams, d)
	}
}

// Outcomes waits until all outcomes are known or ctx ends, for at most [MaxWait], and returns the
// outcomes in the order of the messages. It does not wait for outcomes that cannot become known in
// this time, for example because a subscription is paused.
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
