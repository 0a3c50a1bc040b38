package subscribe_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestADelivery_ShowsWhyTheReceiverIsNotCalled(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	later := now.Add(time.Hour)
	for _, tc := range []struct {
		name     string
		standing domain.Standing
		resumed  int
		isPaused bool
		want     subscribe.Delivery
	}{
		{name: "held", standing: domain.Standing{Hold: later, Failures: 1}, want: subscribe.Delivery{State: subscribe.DeliveryHeld, Until: later, Failures: 1}},
		{name: "the hold has ended", standing: domain.Standing{Hold: now, Failures: 1}, want: subscribe.Delivery{State: subscribe.DeliveryFailing, Failures: 1}},
		{name: "open breaker", standing: domain.Standing{BreakerTo: later, Failures: 5}, want: subscribe.Delivery{State: subscribe.DeliveryFailing, Until: later, Failures: 5}},
		{name: "resumed", standing: domain.Standing{Hold: later, Failures: 5}, resumed: 1, want: subscribe.Delivery{State: subscribe.DeliveryActive}},
		{name: "paused", isPaused: true, want: subscribe.Delivery{State: subscribe.DeliveryPaused}},
		{name: "closed", standing: domain.Standing{State: domain.Closed}, want: subscribe.Delivery{State: subscribe.DeliveryClosed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &repository.Definition{Resumed: tc.resumed, Paused: tc.isPaused}
			require.Equal(t, &tc.want, subscribe.DeliveryOf(d, &tc.standing, now))
		})
	}
}

func TestADelivery_HasWarnings(t *testing.T) {
	now := time.Now()
	w := newWorld(t, subscribe.Options{Clock: func() time.Time { return now }})
	w.streams = memory.NewStreams(30*24*time.Hour, func() time.Time { return now })
	w.Service = subscribe.New(subscribe.Ports{Definitions: w.definitions, Streams: w.streams, Cursors: w.cursors, Dequeues: w.store}, w.keys, subscribe.Options{Clock: func() time.Time { return now }})
	s, err := w.Create(t.Context(), w.draft())
	require.NoError(t, err)
	warnings := func() []domain.Warning {
		t.Helper()
		found, err := w.Get(t.Context(), w.owner, s.ID)
		require.NoError(t, err)
		return found.Delivery.Warnings
	}
	require.Empty(t, warnings())
	topic, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(t, err)
	_, err = w.streams.Append(t.Context(), topic, repositorytest.Messages(3))
	require.NoError(t, err)
	expires := now.Add(repository.MessageRetention)
	require.Empty(t, warnings())
	now = now.Add(15 * 24 * time.Hour)
	got := warnings()
	require.Len(t, got, 1)
	require.Equal(t, domain.MessagesExpiring, got[0].Kind)
	require.WithinDuration(t, expires, got[0].At, time.Second)

	cursor, version, err := w.cursors.Load(t.Context(), s.ID.Cursor(), domain.Owner{Incarnation: "i", Limit: 1, Policy: domain.Policy{Attempts: 3, First: time.Hour, Max: time.Hour}}, func() time.Time { return now })
	require.NoError(t, err)
	for range 2 {
		if cursor.CanTake(0, now) {
			cursor.Take(cursor.Position(0), true)
		}
		call, ok := cursor.Next(now)
		require.True(t, ok)
		cursor.Begin(call)
		cursor.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Published: now, Answer: domain.Answer{Status: 500, Began: now}})
		version, err = w.cursors.Settle(t.Context(), s.ID.Cursor(), version, cursor.Settlement())
		require.NoError(t, err)
		cursor.Stored()
		now = now.Add(2 * time.Hour)
	}
	var kinds []domain.WarningKind
	for _, w := range warnings() {
		kinds = append(kinds, w.Kind)
	}
	require.Equal(t, []domain.WarningKind{domain.ReceiverFailing, domain.MessagesExpiring}, kinds)
	_, err = w.SetPaused(t.Context(), w.owner, s.ID, false)
	require.NoError(t, err)
	require.Len(t, warnings(), 1, "its owner has resumed it")
}
