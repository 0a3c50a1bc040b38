package hubtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/cmd/hubtest"
)

const actor = "5790001330552"

// eventIDs returns the ids of the events in a bundle.
func eventIDs(r io.Reader) (ids []string, err error) {
	var events []struct{ ID string }
	err = json.NewDecoder(r).Decode(&events)
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids, err
}

// consumeUntil consumes bundles until done returns true after a bundle.
func consumeUntil(t *testing.T, c *hubclient.Consumer, handle hubclient.Handler, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, c.Run(ctx, func(ctx context.Context, b *hubclient.Bundle) error {
		err := handle(ctx, b)
		if done() {
			cancel()
		}
		return err
	}))
}

func TestConsume_DeliversAllEventsInOrderOnce(t *testing.T) {
	hub := hubtest.Start(t)
	want := hub.Announce(actor, make([]any, 3000)...) // more events than one bundle can contain
	var got []string
	bundles := make(map[string]bool)
	consumeUntil(t, &hubclient.Consumer{Client: hub.Client(), Actor: actor}, func(_ context.Context, b *hubclient.Bundle) error {
		ids, err := eventIDs(b)
		got = append(got, ids...)
		bundles[b.ID] = true
		return err
	}, func() bool { return len(got) == len(want) })
	require.Equal(t, want, got)
	queues, err := hub.Client().Queues(t.Context(), actor)
	require.NoError(t, err)
	require.Len(t, queues, 3)
	for _, q := range queues {
		require.Zero(t, q.Waiting, "the last bundle is dequeued although its context has ended")
	}
}

func TestConsume_WaitsForData(t *testing.T) {
	hub := hubtest.Start(t)
	hub.Announce(actor, 1)
	var second []string
	bundles := 0
	consumeUntil(t, &hubclient.Consumer{Client: hub.Client(), Actor: actor}, func(context.Context, *hubclient.Bundle) error {
		if bundles++; bundles == 1 {
			second = hub.Announce(actor, 2)
		}
		return nil
	}, func() bool { return bundles == 2 })
	require.Len(t, second, 1)
}

func TestConsume_DeliversABundleAgainThatWasNotHandled(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":     func() error { return errors.New("no room") },
		"panic":     func() error { panic("no room") },
		"half read": func() error { return io.ErrShortBuffer },
	} {
		t.Run(name, func(t *testing.T) {
			hub := hubtest.Start(t)
			want := hub.Announce(actor, 1, 2)
			var bundles, got []string
			consumeUntil(t, &hubclient.Consumer{Client: hub.Client(), Actor: actor}, func(_ context.Context, b *hubclient.Bundle) (err error) {
				if bundles = append(bundles, b.ID); len(bundles) == 1 {
					return fail()
				}
				got, err = eventIDs(b)
				return err
			}, func() bool { return len(bundles) == 2 })
			require.Equal(t, want, got)
			require.Equal(t, bundles[0], bundles[1])
		})
	}
}

func TestConsume_ReceivesABundleThatAnotherConsumerOpened(t *testing.T) {
	hub := hubtest.Start(t)
	want := hub.Announce(actor, 1)
	opened, err := hub.Client().Peek(t.Context(), actor, hubclient.PeekOptions{})
	require.NoError(t, err)
	require.NoError(t, opened.Close())
	var got []string
	consumeUntil(t, &hubclient.Consumer{Client: hub.Client(), Actor: actor}, func(_ context.Context, b *hubclient.Bundle) (err error) {
		require.Equal(t, opened.ID, b.ID)
		got, err = eventIDs(b)
		return err
	}, func() bool { return got != nil })
	require.Equal(t, want, got)
}

func TestConsume_TwoConsumersLoseNothingAndKeepTheOrder(t *testing.T) {
	hub := hubtest.Start(t)
	const n = 40
	var want []string
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	seen := make(map[string]bool)
	var got [2][]string
	var running sync.WaitGroup
	var errs [2]error
	for i := range got {
		running.Go(func() {
			c := &hubclient.Consumer{Client: hub.Client(), Actor: actor}
			errs[i] = c.Run(ctx, func(_ context.Context, b *hubclient.Bundle) error {
				ids, err := eventIDs(b)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				for _, id := range ids {
					seen[id] = true
				}
				got[i] = append(got[i], ids...)
				if len(seen) == n {
					cancel()
				}
				return nil
			})
		})
	}
	for range n {
		id := hub.Announce(actor, "x")
		mu.Lock()
		want = append(want, id...)
		mu.Unlock()
	}
	running.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	for _, ids := range got {
		last := -1
		for _, id := range ids {
			at := indexOf(want, id)
			require.GreaterOrEqual(t, at, last, "each has them in order; the one that is late may have one twice")
			last = at
		}
	}
}

func indexOf(all []string, one string) int {
	for i, s := range all {
		if s == one {
			return i
		}
	}
	return -1
}

func TestDequeue_ReportsABundleThatIsNotOpen(t *testing.T) {
	hub := hubtest.Start(t)
	hub.Announce(actor, 1)
	b, err := hub.Client().Peek(t.Context(), actor, hubclient.PeekOptions{Group: "timeseries", BundleID: uuid.NewString()})
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, b.Dequeue(t.Context()))
	var notOpen *hubclient.NotOpenError
	require.ErrorAs(t, b.Dequeue(t.Context()), &notOpen)
	require.False(t, notOpen.MayBeDequeued)
	require.Equal(t, http.StatusNotFound, notOpen.Problem.Status)
	_, err = hub.Client().Peek(t.Context(), actor, hubclient.PeekOptions{})
	require.ErrorIs(t, err, hubclient.ErrNoData)
}

func TestPeek_UnderAnotherIDIsRefusedAndDownloadIsNot(t *testing.T) {
	hub := hubtest.Start(t)
	hub.Announce(actor, 1)
	b, err := hub.Client().Peek(t.Context(), actor, hubclient.PeekOptions{})
	require.NoError(t, err)
	first, err := io.ReadAll(b)
	require.NoError(t, err)
	require.EqualValues(t, len(first), b.Size)
	_, err = hub.Client().Peek(t.Context(), actor, hubclient.PeekOptions{BundleID: uuid.NewString()})
	var refused *hubclient.Problem
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusConflict, refused.Status)
	require.Contains(t, refused.Detail, b.ID)
	again, err := hub.Client().Download(t.Context(), actor, b.ID)
	require.NoError(t, err)
	second, err := io.ReadAll(again)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

func TestAnnounce_ReportsWhatIsStoredAndWhatIsRefused(t *testing.T) {
	hub := hubtest.Start(t)
	event := func(weight int64) hubclient.Event {
		return hubclient.Event{
			ID: uuid.NewString(), Recipient: actor, Origin: "Charges", ContentType: "prices", DocumentType: "D18", SupportsBundling: true, Weight: weight,
		}
	}
	first, second := event(1), event(1)
	announced, err := hub.Client().Announce(t.Context(), []hubclient.Event{first})
	require.NoError(t, err)
	require.Equal(t, &hubclient.Announced{Accepted: 1}, announced)

	changed := first
	changed.Weight = 2
	announced, err = hub.Client().Announce(t.Context(), []hubclient.Event{second, changed})
	require.Equal(t, &hubclient.Announced{Accepted: 1}, announced)
	var refused *hubclient.Problem
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusConflict, refused.Status)
	require.Len(t, refused.Errors, 1)
	require.Equal(t, 1, refused.Errors[0].Index())

	announced, err = hub.Client().Announce(t.Context(), []hubclient.Event{event(1), event(-1)})
	require.Nil(t, announced, "nothing is stored")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusBadRequest, refused.Status)
	require.Equal(t, 1, refused.Errors[0].Index())
}
