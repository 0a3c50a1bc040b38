package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A world has one subscription, which a test serves step by step as a node would.
type world struct {
	*testing.T
	*inspect.Service
	definitions *memory.Definitions
	streams     *memory.Streams
	cursors     *memory.Cursors
	subscribe   *subscribe.Service
	owner       domain.ActorID
	reader      inspect.Reader
	id          domain.SubscriptionID
	now         time.Time
	node        string // name of the node that serves the subscription

	policy   domain.Policy
	ordered  bool
	answer   domain.Answer // answer that test calls get
	body     string
	tested   []domain.Message
	failures error // error that Receiver returns, or nil
}

func newWorld(t *testing.T, filter string) *world {
	t.Helper()
	w := &world{
		T: t, now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), definitions: memory.NewDefinitions(), owner: rt.NewActor(),
		policy: domain.Policy{Attempts: 3, First: time.Minute, Max: time.Hour, BreakAfter: 20, BreakFor: time.Minute},
	}
	clock := func() time.Time { return w.now }
	w.streams, w.cursors = memory.NewStreams(48*time.Hour, clock), memory.NewCursors(clock)
	w.subscribe = subscribe.New(subscribe.Ports{Definitions: w.definitions, Streams: w.streams, Cursors: w.cursors}, nil, subscribe.Options{Clock: clock})
	w.Service = inspect.New(inspect.Ports{
		Definitions: w.definitions, Cursors: w.cursors, Streams: w.streams, Receivers: w, Caller: w,
	}, inspect.Options{Clock: clock, Random: func() string { return "random" }})
	s, err := w.subscribe.Create(t.Context(), subscribe.Draft{Subscription: domain.Subscription{Owner: w.owner, CallbackURL: "https://example.org/", Filter: filter}})
	require.NoError(t, err)
	w.id, w.reader, w.node = s.ID, inspect.Reader{Actor: w.owner}, "node"
	return w
}

func (w *world) Receiver(context.Context, domain.CursorID, bool) (inspect.Receiver, error) {
	return inspect.Receiver{Policy: w.policy}, w.failures
}

func (w *world) Test(_ context.Context, _ *inspect.Receiver, m *domain.Message) (domain.Answer, []byte) {
	w.tested = append(w.tested, *m)
	return w.answer, []byte(w.body)
}

func (w *world) stream() domain.StreamName {
	stream, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(w, err)
	return stream
}

// publishTypes publishes one message of each type.
func (w *world) publishTypes(priority int, types ...string) {
	w.Helper()
	for _, text := range types {
		_, err := w.streams.Append(w.Context(), w.stream(), []domain.Message{{Priority: priority, Attributes: map[string]string{"id": "id of " + text, "type": text, "source": "/tests"}}})
		require.NoError(w, err)
	}
}

// callWith simulates a node: for each answer it takes one delivery and calls the receiver, which returns the answer.
// With a zero answer, the call never ends. It stores the state of the cursor.
func (w *world) callWith(answers ...domain.Answer) {
	w.Helper()
	clock := func() time.Time { return w.now }
	cursor, version, err := w.cursors.Load(w.Context(), w.id.Cursor(), domain.Owner{Incarnation: w.node, Limit: 16, Policy: w.policy, IsOrdered: w.ordered}, clock)
	require.NoError(w, err)
	for _, a := range answers {
		call, ok := cursor.Next(w.now)
		for p := domain.Priorities - 1; p >= 0 && !ok; p-- {
			at := cursor.Position(p)
			found, err := w.streams.Read(w.Context(), w.stream(), at, 1)
			require.NoError(w, err)
			if len(found.Entries) > 0 && cursor.CanTake(p, w.now) {
				cursor.Take(found.Entries[0].Position, true)
				call, ok = cursor.Next(w.now)
			}
		}
		require.True(w, ok, "there is something to call")
		cursor.Begin(call)
		if a.Status == 0 && a.Error == "" {
			continue
		}
		a.Began, a.Took = w.now, 120*time.Millisecond
		cursor.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Published: w.now, Answer: a})
	}
	_, err = w.cursors.Settle(w.Context(), w.id.Cursor(), version, cursor.Settlement())
	require.NoError(w, err)
}

func (w *world) delivery(priority int, number int64) domain.DeliveryID {
	return domain.DeliveryID{Subscription: w.id, Entry: domain.EntryID{Priority: priority, Number: number}}
}

func (w *world) get(number int64) *inspect.Delivery {
	w.Helper()
	d, err := w.Get(w.Context(), w.reader, w.delivery(0, number))
	require.NoError(w, err)
	return d
}

func (w *world) explain(priority int, number int64) *inspect.Explanation {
	w.Helper()
	x, err := w.Explain(w.Context(), w.reader, w.delivery(priority, number))
	require.NoError(w, err)
	return x
}

// list returns the deliveries that List returns, as number and state.
func (w *world) list(q inspect.Query) (states []string) {
	w.Helper()
	q.Subscription = w.id
	for {
		page, err := w.List(w.Context(), w.reader, q)
		require.NoError(w, err)
		for _, d := range page.Deliveries {
			states = append(states, d.ID.Entry.String()+" "+string(d.State))
		}
		if q.Page = page.Next; q.Page == "" {
			return states
		}
	}
}

// newSubscription creates a second subscription.
func (w *world) newSubscription(owner domain.ActorID) *subscribe.Subscription {
	w.Helper()
	s, err := w.subscribe.Create(w.Context(), subscribe.Draft{Subscription: domain.Subscription{Owner: owner, CallbackURL: "https://example.org/"}})
	require.NoError(w, err)
	return s
}
