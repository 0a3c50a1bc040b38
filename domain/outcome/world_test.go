package outcome_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/outcome"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A world contains a topic, and the stores of its subscriptions. Tests use it in a synctest bubble.
type world struct {
	*testing.T
	*outcome.Service
	definitions *memory.Definitions
	streams     *memory.Streams
	cursors     *countedCursors
	events      *publish.Service
	subscribe   *subscribe.Service
	stream      domain.StreamName

	mu      sync.Mutex
	settled map[domain.CursorID]chan struct{}
}

// A countedCursors counts the reads of standings. If err is set, these reads fail with err.
type countedCursors struct {
	*memory.Cursors
	mu    sync.Mutex
	reads int
	err   error
}

func (c *countedCursors) Standing(ctx context.Context, id domain.CursorID) (domain.Standing, error) {
	c.mu.Lock()
	c.reads++
	err := c.err
	c.mu.Unlock()
	<-time.After(time.Millisecond)
	if err != nil {
		return domain.Standing{}, err
	}
	return c.Cursors.Standing(ctx, id)
}

func (c *countedCursors) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, definitions: memory.NewDefinitions(), streams: memory.NewStreams(time.Hour, time.Now),
		cursors: &countedCursors{Cursors: memory.NewCursors(time.Now)}, settled: make(map[domain.CursorID]chan struct{}),
	}
	w.Service = outcome.New(outcome.Ports{
		Definitions: w.definitions, Cursors: w.cursors, Streams: w.streams, Settled: w.settledOf, Clock: time.Now,
	})
	w.events = publish.New(w.streams, func(domain.StreamName, []domain.Message, []repository.Appended) {})
	w.subscribe = subscribe.New(subscribe.Ports{Definitions: w.definitions, Streams: w.streams, Cursors: w.cursors.Cursors}, nil, subscribe.Options{})
	var err error
	w.stream, err = domain.ParseTopic(domain.DefaultTopic)
	require.NoError(t, err)
	return w
}

// settledOf returns a channel that is closed when this node settles a call of a cursor. A call of
// another node does not close the channel.
func (w *world) settledOf(id domain.CursorID) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settled[id] == nil {
		w.settled[id] = make(chan struct{})
	}
	return w.settled[id]
}

// addReceiver creates a sync subscription with the given filter.
func (w *world) addReceiver(filter string) *receiver {
	w.Helper()
	owner := repositorytest.NewActor()
	s, err := w.subscribe.Create(w.Context(), subscribe.Draft{Subscription: domain.Subscription{
		Owner: owner, CallbackURL: "https://example.org/", Filter: filter, IsSync: true,
	}})
	require.NoError(w, err)
	return &receiver{world: w, owner: owner, id: s.ID, policy: domain.QueuePolicy([]time.Duration{0}, 1)}
}

// publishIDs publishes one message for each id, and returns the Wait of the sender.
func (w *world) publishIDs(ids ...string) (*outcome.Wait, publish.Result) {
	w.Helper()
	messages := make([]domain.Message, len(ids))
	for i, id := range ids {
		messages[i] = domain.Message{ID: id, Attributes: map[string]string{"type": id}}
	}
	published, err := w.events.Publish(w.Context(), w.stream, messages)
	require.NoError(w, err)
	return w.Begin(w.Context(), w.stream, messages, published.Awaited), published
}

// A receiver receives the messages of one sync subscription.
type receiver struct {
	world  *world
	owner  domain.ActorID
	id     domain.SubscriptionID
	policy domain.Policy
}

// answerCalls delivers one waiting message for each answer, and stores each result separately.
// Unless isLocal is set, a different node makes the calls.
func (r *receiver) answerCalls(isLocal bool, answers ...domain.Answer) {
	w, ctx := r.world, context.Background()
	owner := domain.Owner{Incarnation: "node", Limit: 1, Policy: r.policy}
	c, version, err := w.cursors.Load(ctx, r.id.Cursor(), owner, time.Now)
	require.NoError(w, err)
	d, err := w.definitions.Subscription(ctx, r.id)
	require.NoError(w, err)
	for _, a := range answers {
		call, ok := c.Next(time.Now())
		for !ok {
			found, err := w.streams.Read(ctx, w.stream, c.Position(0), 1)
			require.NoError(w, err)
			require.NotEmpty(w, found.Entries, "nothing waits")
			e := &found.Entries[0]
			c.Take(e.Position, d.Filter == "" || d.Filter == fmt.Sprintf("type == '%s'", e.Attributes["type"]))
			call, ok = c.Next(time.Now())
		}
		c.Begin(call)
		a.Began = time.Now()
		c.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Published: time.Now(), Answer: a})
		version, err = w.cursors.Settle(ctx, r.id.Cursor(), version, c.Settlement())
		require.NoError(w, err)
		c.Stored()
	}
	if isLocal {
		w.mu.Lock()
		close(w.settled[r.id.Cursor()])
		delete(w.settled, r.id.Cursor())
		w.mu.Unlock()
	}
}

// runAfter starts a goroutine that runs f after d.
func runAfter(d time.Duration, f func()) {
	go func() {
		<-time.After(d)
		f()
	}()
}

// awaitOutcomes waits for the outcomes, and returns them and the duration of the wait.
func (w *world) awaitOutcomes(wait *outcome.Wait) ([]outcome.Outcome, time.Duration) {
	w.Helper()
	require.NotNil(w, wait)
	start := time.Now()
	return wait.Outcomes(w.Context()), time.Since(start)
}
