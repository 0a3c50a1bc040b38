package find_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/find"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// waitingExplainer explains that every delivery is Waiting.
type waitingExplainer struct{}

func (waitingExplainer) Explain(_ context.Context, _ inspect.Reader, id domain.DeliveryID) (*inspect.Explanation, error) {
	return &inspect.Explanation{Delivery: inspect.Delivery{ID: id, State: inspect.Waiting}, Cause: inspect.CausePaused, Sentences: []string{"It is paused."}}, nil
}

func TestFind_FindsAnEventOfATopicAndItsDeliveries(t *testing.T) {
	w := newWorld(t, find.Options{})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	streams, definitions := memory.NewStreams(time.Hour, func() time.Time { return now }), memory.NewDefinitions()
	w.ports.Streams, w.ports.Definitions, w.ports.Deliveries = streams, definitions, waitingExplainer{}
	w.service = find.New(w.ports, find.Options{})
	topic, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(t, err)
	_, err = streams.Append(t.Context(), topic, []domain.Message{{ID: "/x first"}, {ID: "/x e", Attributes: map[string]string{"id": "e", "source": "/x", "type": "made"}}})
	require.NoError(t, err)
	for _, name := range []string{domain.DefaultTopic, "other"} {
		id, err := domain.ParseSubscriptionID(repositorytest.NewEventID().String())
		require.NoError(t, err)
		_, _, err = definitions.CreateSubscription(t.Context(), &repository.Definition{ID: id, Subscription: domain.Subscription{Owner: w.actor, Topic: name}})
		require.NoError(t, err)
	}

	q := find.Query{ID: "e", MessageID: "/x e"}
	r := w.findOne(q)
	require.Equal(t, find.Published, r.Kind)
	require.Equal(t, now, r.Steps[0].At)
	require.Contains(t, r.Steps[0].Details, find.Detail{Name: "number", Value: "1"})

	q.Actor = w.actor
	a := w.find(q)
	require.Len(t, a.Results, 2, "its own, and the delivery to the subscription of its topic")
	require.Equal(t, []find.Cause{"paused"}, causesOf(&a.Results[1]))

	require.True(t, w.find(find.Query{ID: "e", MessageID: "/x e", Topic: "other"}).IsUnknown())
	require.True(t, w.find(find.Query{ID: "f", MessageID: "/x f"}).IsUnknown())
	for _, q := range []find.Query{
		{ID: "e", Kind: find.Published},
		{ID: "e", MessageID: "/x e", Kind: find.Event},
		{ID: "e", MessageID: "/x e", Topic: "<script>"},
		{ID: "e", MessageID: "/x e", Origin: domain.Charges},
		{ID: "e", MessageID: "/x e", After: "x"},
	} {
		_, err := w.service.Find(t.Context(), q)
		require.Equal(t, domain.Invalid, domain.KindOf(err), "%+v", q)
	}

	now = now.Add(2 * time.Hour) // by now, the message has expired, but its id is still stored
	r = w.findOne(find.Query{ID: "e", MessageID: "/x e"})
	require.Zero(t, r.Steps[0].At)
	require.Len(t, r.Notes, 1)
}
