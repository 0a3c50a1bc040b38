package ingest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/domain"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A mailbox has a newer format, so its messages wait. The bus allows two deliveries, and no message
// becomes a dead letter, so waiting does not count as a delivery.
func TestAMailboxOfANewerFormat_HoldsItsMessagesWithoutDeliveries(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		s := newSite(t, withLocks("PT20S", 2))
		newer, known := rt.NewActor(), rt.NewActor()
		d := s.damageMailboxes()
		d.has(domain.Errorf(domain.NewerFormat, "the head has format 2"), newer)
		out := s.sender(queue)
		waiting, events := rt.Events(10, newer), rt.Events(10, known)
		for i := range waiting {
			out.sendEvents(waiting[i])
			out.sendEvents(events[i])
		}
		stop := s.startIngestion(func(o *ingest.Options) { o.Limits.ReceiverMessages = 40 })
		began := time.Now()
		s.waitUntilStored(len(events))
		require.Less(t, time.Since(began), 10*time.Second, "others are not affected")

		<-time.After(10 * time.Minute)
		require.Zero(t, s.metric("messages_dead_lettered_total"))
		require.Zero(t, s.metric("locks_lost_total"))
		calls := s.hub.calls.Load()
		<-time.After(10 * time.Minute)
		require.Less(t, s.hub.calls.Load()-calls, int64(2*len(waiting)*10*4), "twice for each message in 30 seconds")

		d.has(nil, newer)
		s.waitUntilStored(len(waiting) + len(events))
		eventually(t, "all at rest", func() bool { return s.metric("messages_in_hand") == 0 })
		stop()
		s.has(newer, waiting...)
		s.has(known, events...)
		require.Zero(t, s.metric("messages_dead_lettered_total"))
		require.Zero(t, s.metric("inversions_total"))
		require.Zero(t, s.metric("sessions_holding"))
	})
}

// Messages for mailboxes of a newer format are parked. When they use half of the capacity, the
// whole queue waits.
func TestAMailboxOfANewerFormat_UsesHalfTheCapacityOfTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, withLocks("PT20S", 2))
		newer, known := rt.NewActor(), rt.NewActor()
		d := s.damageMailboxes()
		d.has(domain.Errorf(domain.NewerFormat, "the head has format 2"), newer)
		out := s.sender(plainRecipient)
		waiting, event := rt.Events(10, newer), rt.Event(known)
		for _, e := range append(waiting, event) {
			out.sendEvents(e)
		}
		stop := s.startIngestion(func(o *ingest.Options) { o.Limits.ReceiverMessages = 8 })
		<-time.After(5 * time.Minute)
		require.LessOrEqual(t, s.metric("messages_in_hand"), 8.0)
		d.has(nil, newer)
		s.waitUntilStored(len(waiting) + 1)
		stop()
		s.has(newer, waiting...)
		s.has(known, event)
		require.Zero(t, s.metric("messages_dead_lettered_total"))
	})
}
