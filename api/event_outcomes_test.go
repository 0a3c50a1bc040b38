package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/outcome"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// An awaitedTopic is a topic for whose events senders wait. The test calls the receivers of its
// subscriptions.
type awaitedTopic struct {
	definitions *memory.Definitions
	streams     *memory.Streams
	cursors     *memory.Cursors
	stream      domain.StreamName

	appended func() // function that is called after the next append
}

func newAwaitedTopic(t *testing.T) (*awaitedTopic, func(*api.Options, *hub.Options)) {
	t.Helper()
	w := &awaitedTopic{definitions: memory.NewDefinitions(), streams: memory.NewStreams(time.Hour, time.Now), cursors: memory.NewCursors(time.Now)}
	var err error
	w.stream, err = domain.ParseTopic("orders")
	require.NoError(t, err)
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	return w, func(o *api.Options, _ *hub.Options) {
		o.Subscriptions = subscribe.New(subscribe.Ports{
			Definitions: w.definitions, Streams: w.streams, Cursors: w.cursors, Dequeues: memory.New(memory.Options{}),
		}, keys, subscribe.Options{})
		o.Events = publish.New(w.streams, func(domain.StreamName, []domain.Message, []repository.Appended) {
			if f := w.appended; f != nil {
				w.appended = nil
				f()
			}
		})
		o.Outcomes = outcome.New(outcome.Ports{
			Definitions: w.definitions, Cursors: w.cursors, Streams: w.streams, Clock: time.Now,
			Settled: func(domain.CursorID) <-chan struct{} { return nil },
		})
	}
}

// callReceiver calls the receiver of a subscription once for each of statuses, with which the
// receiver responds.
func (w *awaitedTopic) callReceiver(id domain.SubscriptionID, statuses ...int) error {
	ctx := context.Background()
	c, version, err := w.cursors.Load(ctx, id.Cursor(), domain.Owner{Incarnation: "node", Limit: domain.MaxConcurrency, Policy: domain.QueuePolicy([]time.Duration{0}, 1)}, time.Now)
	if err != nil {
		return err
	}
	found, err := w.streams.Read(ctx, w.stream, c.Position(0), len(statuses))
	if err != nil {
		return err
	}
	for i, e := range found.Entries {
		c.Take(e.Position, true)
		call, _ := c.Next(time.Now())
		c.Begin(call)
		c.Settle(domain.Outcome{Entry: call.EntryID, Published: e.Published, Answer: domain.Answer{Status: statuses[i], Began: time.Now()}})
	}
	_, err = w.cursors.Settle(ctx, id.Cursor(), version, c.Settlement())
	return err
}

func TestPostEvents_ListsTheOutcomesOfSubscriptionsThatAreSync(t *testing.T) {
	w, with := newAwaitedTopic(t)
	f := serve(t, with)
	const events = "/v1/events?topic=orders"
	require.JSONEq(t, `{"accepted":1,"duplicates":0}`, f.do("POST", events, cloudEvent("0"), "Content-Type", structured).wants(202).body)
	path := subscriptions + "/" + id(7)
	f.do("PUT", path, `{"topic":"orders","delivery":"sync","callback_url":"https://example.org/"}`).wants(201)
	sub, err := domain.ParseSubscriptionID(id(7))
	require.NoError(t, err)
	called := make(chan error, 1)
	w.appended = func() { called <- w.callReceiver(sub, 204, 500) }
	a := f.do("POST", events, "["+cloudEvent("1")+","+cloudEvent("2")+"]", "Content-Type", batch)
	require.NoError(t, <-called)
	require.JSONEq(t, fmt.Sprintf(`{"accepted":2,"duplicates":0,"outcomes":[
		{"event":0,"subscription":%q,"state":"delivered","status":204},{"event":1,"subscription":%q,"state":"failed","status":500}]}`, id(7), id(7)), a.wants(200).body)

	// The response to a repeated request also contains the outcomes.
	require.JSONEq(t, fmt.Sprintf(`{"accepted":0,"duplicates":1,"outcomes":[{"event":0,"subscription":%q,"state":"failed","status":500}]}`, id(7)),
		f.do("POST", events, cloudEvent("2"), "Content-Type", structured).wants(200).body)

	// A subscription is paused, or the sender prefers not to wait, or it sends many events. The
	// request does not wait.
	start := time.Now()
	for _, preference := range []string{"respond-async", "wait=5, Respond-Async; a=b"} {
		require.NotContains(t, f.do("POST", events, cloudEvent("3"), "Content-Type", structured, "Prefer", preference).wants(202).body, "outcomes")
	}
	var many []string
	for i := range outcome.MaxMessages + 1 {
		many = append(many, cloudEvent(fmt.Sprint("many ", i)))
	}
	require.NotContains(t, f.do("POST", events, "["+strings.Join(many, ",")+"]", "Content-Type", batch).wants(202).body, "outcomes")
	f.do("POST", path+"/pause", "").wants(200)
	a = f.do("POST", events, cloudEvent("4"), "Content-Type", structured, "Prefer", "wait=5")
	require.JSONEq(t, fmt.Sprintf(`{"accepted":1,"duplicates":0,"outcomes":[{"event":0,"subscription":%q,"state":"pending"}]}`, id(7)), a.wants(202).body)
	require.Less(t, time.Since(start), outcome.MaxWait)
}
