package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

func TestAList_HasStoredAndWaitingDeliveries(t *testing.T) {
	w := newWorld(t, "")
	w.publishTypes(0, "a", "b", "c", "d")
	w.callWith(domain.Answer{Status: 200}, domain.Answer{Status: 500}, domain.Answer{})
	w.publishTypes(3, "e")
	want := []string{"0.0 delivered", "0.1 retrying", "0.2 calling", "0.3 waiting", "3.0 waiting"}
	require.Equal(t, want, w.list(inspect.Query{}))
	for size := range 6 {
		require.Equal(t, want, w.list(inspect.Query{Size: size}), "pages of %d", size)
	}
	require.Equal(t, []string{"0.3 waiting", "3.0 waiting"}, w.list(inspect.Query{State: inspect.Waiting, Size: 1}))
	require.Equal(t, []string{"0.2 calling"}, w.list(inspect.Query{State: inspect.Calling}))
	require.Equal(t, []string{"0.1 retrying"}, w.list(inspect.Query{State: inspect.Retrying}))
	require.Equal(t, []string{"0.0 delivered"}, w.list(inspect.Query{State: inspect.Delivered}))
	require.Empty(t, w.list(inspect.Query{State: inspect.Dead}))

	w.callWith(domain.Answer{Status: 200}, domain.Answer{Status: 200}, domain.Answer{Status: 200})
	for range 2 {
		w.now = w.now.Add(2 * time.Hour)
		w.callWith(domain.Answer{Error: "no connection"})
	}
	require.Equal(t, []string{"0.0 delivered", "0.1 dead", "0.2 delivered", "0.3 delivered", "3.0 delivered"}, w.list(inspect.Query{Size: 2}))
	require.Equal(t, []string{"0.1 dead"}, w.list(inspect.Query{State: inspect.Dead}))
	page, err := w.List(t.Context(), w.reader, inspect.Query{Subscription: w.id})
	require.NoError(t, err)
	for i, d := range page.Deliveries {
		require.NotNil(t, d.Event, "delivery %d", i)
	}
}

func TestAList_LeavesOutFilteredEntries(t *testing.T) {
	w := newWorld(t, "type == 'b'")
	w.publishTypes(0, "a", "b", "a", "b", "a")
	require.Equal(t, []string{"0.1 waiting", "0.3 waiting"}, w.list(inspect.Query{Size: 1}))
}

func TestALongBacklog_IsListedUpToALimit(t *testing.T) {
	w := newWorld(t, "")
	for range 20 {
		_, err := w.streams.Append(t.Context(), w.stream(), make([]domain.Message, 60))
		require.NoError(t, err)
	}
	require.Len(t, w.list(inspect.Query{Size: inspect.MaxPage}), 1000)
	require.Equal(t, inspect.Waiting, w.get(1199).State)
	require.Nil(t, w.get(1199).Event)
	require.EqualValues(t, 1199, w.explain(0, 1199).Behind)
}

func TestAnInvalidQuery_IsRefused(t *testing.T) {
	w := newWorld(t, "")
	for _, q := range []inspect.Query{{Size: -1}, {Size: 101}, {State: "none"}, {Page: "!"}, {Page: "MC4x"}, {Page: "MC4xLjI"}, {Page: "MTEuMA"}} {
		q.Subscription = w.id
		_, err := w.List(t.Context(), w.reader, q)
		if q.Page == "MC4x" { // 0.1
			require.NoError(t, err)
			continue
		}
		require.Equal(t, domain.Invalid, domain.KindOf(err), fmt.Sprint(q))
	}
}

func TestAnotherOwner_GetsNotFound(t *testing.T) {
	w := newWorld(t, "")
	w.publishTypes(0, "a")
	stranger := inspect.Reader{Actor: rt.NewActor()}
	errorsOf := func(id domain.SubscriptionID, reader inspect.Reader) (texts []string) {
		delivery := domain.DeliveryID{Subscription: id}
		_, err := w.List(t.Context(), reader, inspect.Query{Subscription: id})
		texts = append(texts, fmt.Sprint(err))
		_, err = w.Get(t.Context(), reader, delivery)
		texts = append(texts, fmt.Sprint(err))
		_, err = w.Explain(t.Context(), reader, delivery)
		texts = append(texts, fmt.Sprint(err))
		_, err = w.Service.Test(t.Context(), reader, id)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		return append(texts, fmt.Sprint(err))
	}
	found := errorsOf(w.id, stranger)
	require.NoError(t, w.definitions.DeleteSubscription(t.Context(), w.owner, w.id, ""))
	require.Equal(t, found, errorsOf(w.id, stranger))
	require.Equal(t, found, errorsOf(w.id, w.reader))
	require.Empty(t, w.tested)
}

func TestAnOperator_ReadsEverySubscription(t *testing.T) {
	w := newWorld(t, "")
	w.publishTypes(0, "a")
	w.reader = inspect.Reader{IsOperator: true}
	require.Equal(t, inspect.Waiting, w.get(0).State)
}

func TestADelivery_HasItsAttemptsAndItsEvent(t *testing.T) {
	w := newWorld(t, "")
	w.publishTypes(0, "a", "b")
	w.callWith(domain.Answer{Status: 503, Error: "the receiver failed (503); look at its log"})
	d := w.get(0)
	require.Equal(t, inspect.Retrying, d.State)
	require.Equal(t, 1, d.Attempts)
	require.Equal(t, 503, d.History[0].Status)
	require.Equal(t, 120*time.Millisecond, d.History[0].Took)
	require.WithinDuration(t, w.now.Add(time.Minute), d.Due, 2*time.Second)
	require.Equal(t, &inspect.Event{ID: "id of a", Type: "a", Source: "/tests"}, d.Event)
	require.Equal(t, w.now, d.Published)

	w.now = w.now.Add(time.Hour)
	w.callWith(domain.Answer{Status: 200})
	d = w.get(0)
	require.Equal(t, inspect.Delivered, d.State)
	require.False(t, d.Inferred)
	require.Len(t, d.History, 2)
	require.Equal(t, 2, d.Attempts)
	require.NotNil(t, d.Event)
	_, err := w.Get(t.Context(), w.reader, w.delivery(0, 2))
	require.Equal(t, domain.NotFound, domain.KindOf(err), "the stream has no such entry")
	_, err = w.Get(t.Context(), w.reader, w.delivery(1, 0))
	require.Equal(t, domain.NotFound, domain.KindOf(err))
}

// A cursor stores only the latest attempts, so the state of an old delivery must be inferred.
func TestAnOldDelivery_HasAnInferredState(t *testing.T) {
	w := newWorld(t, "type != 'c'")
	stream := w.stream()
	w.publishTypes(0, "a", "b", "c")
	many := make([]domain.Message, domain.MaxRecent)
	for i := range many {
		many[i].Attributes = map[string]string{"type": "x"}
	}
	_, err := w.streams.Append(t.Context(), stream, many)
	require.NoError(t, err)
	for range 3 + len(many) {
		w.callWith(domain.Answer{Status: 200})
	}
	d := w.get(0)
	require.Equal(t, inspect.Delivered, d.State)
	require.True(t, d.Inferred)
	require.Equal(t, inspect.Filtered, w.get(2).State)
	require.True(t, w.get(2).Inferred)
	w.now = w.now.Add(49 * time.Hour) // by now, the stream has removed the message
	w.publishTypes(0, "new")
	d = w.get(0)
	require.Equal(t, inspect.Ended, d.State)
	require.Nil(t, d.Event)
	require.Equal(t, inspect.CauseUnknown, w.explain(0, 0).Cause)
}

func TestAMessageFromBeforeTheSubscription_HasNoDelivery(t *testing.T) {
	w := newWorld(t, "")
	w.publishTypes(0, "a")
	w.now = w.now.Add(time.Minute)
	later := w.newSubscription(w.owner)
	_, err := w.Get(t.Context(), w.reader, domain.DeliveryID{Subscription: later.ID})
	require.Equal(t, domain.NotFound, domain.KindOf(err))
	w.get(0)
}
