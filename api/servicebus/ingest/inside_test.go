package ingest

import (
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

func actor(t *testing.T, name string) domain.ActorID {
	t.Helper()
	id, err := domain.ParseActorID(name)
	require.NoError(t, err)
	return id
}

// newNumberedMessage returns a message with the given sequence number and one event for each recipient.
func newNumberedMessage(number int64, recipients ...domain.ActorID) *busMessage {
	m := &busMessage{ReceivedMessage: &azservicebus.ReceivedMessage{SequenceNumber: &number}}
	for _, r := range recipients {
		m.Content.events = append(m.Content.events, domain.Event{Recipient: r})
	}
	return m
}

func TestLateEventsAreCountedByRecipient(t *testing.T) {
	a, b := actor(t, "a"), actor(t, "b")
	o := newOrderMonitor()
	require.Zero(t, o.observe([]*busMessage{newNumberedMessage(5, a), newNumberedMessage(6, a)}, 0))
	require.Zero(t, o.observe([]*busMessage{newNumberedMessage(4, b)}, 0), "others have an order of their own")
	require.Equal(t, 2, o.observe([]*busMessage{newNumberedMessage(3, a, b), newNumberedMessage(7, a)}, 0))
	require.Zero(t, o.observe([]*busMessage{newNumberedMessage(6, a)}, 1), "a redelivery")
	require.Equal(t, 1, o.observe([]*busMessage{newNumberedMessage(2, a), newNumberedMessage(6, a)}, 1), "a redelivery beside one that is late")
	require.Equal(t, 1, o.observe([]*busMessage{newNumberedMessage(9, a), newNumberedMessage(8, a)}, 0), "in one save")
	require.Zero(t, o.observe([]*busMessage{{ReceivedMessage: &azservicebus.ReceivedMessage{}, Content: messageEvents{events: []domain.Event{{Recipient: a}}}}}, 0), "a message without a number says nothing")
}

func TestOrderMonitor_ForgetsTheLeastRecentRecipient(t *testing.T) {
	o := newOrderMonitor()
	for n := range watchedRecipients + 10 {
		o.observe([]*busMessage{newNumberedMessage(5, actor(t, strconv.Itoa(n)))}, 0)
	}
	require.Len(t, o.marks, watchedRecipients)
	require.Equal(t, watchedRecipients, o.byUsage.Len())
	require.Zero(t, o.observe([]*busMessage{newNumberedMessage(4, actor(t, "0"))}, 0), "forgotten")
	require.Equal(t, 1, o.observe([]*busMessage{newNumberedMessage(4, actor(t, strconv.Itoa(watchedRecipients)))}, 0))
}

func TestDelaysGrowUpToALimit(t *testing.T) {
	for random, share := range map[float64]float64{0: 1, 1: 0.5} {
		in := New(Options{Hub: (*hub.Hub)(nil), Random: func() float64 { return random }})
		for failures, full := range map[int]time.Duration{1: 50 * time.Millisecond, 2: 100 * time.Millisecond, 6: 1600 * time.Millisecond, 20: 30 * time.Second, 1 << 40: 30 * time.Second} {
			require.Equal(t, time.Duration(share*float64(full)), in.retryDelay(failures))
		}
	}
}

// One session more than the limit is waiting. Some of the served sessions yield their slots, but
// never all of them at the same time.
func TestSessionSlots_YieldWhenAllSlotsAreInUse(t *testing.T) {
	p := newSessionSlots(2, 1)
	for range 2 {
		require.NoError(t, p.takeSearchSlot(t.Context()))
		p.occupySlot()
	}
	require.NoError(t, p.takeSearchSlot(t.Context()))
	require.False(t, p.MakeWay(), "one looks for a session, and finds none")
	p.returnSearchSlot()
	require.NoError(t, p.takeSearchSlot(t.Context()))
	p.occupySlot()
	<-p.Wanted()
	require.True(t, p.MakeWay())
	require.False(t, p.MakeWay(), "one is enough for now")
	p.returnSessionSlot(true)
	require.False(t, p.MakeWay())
	select {
	case <-p.Wanted():
		require.Fail(t, "there is a place")
	default:
	}
	require.NoError(t, p.takeSearchSlot(t.Context()))
	p.occupySlot()
	require.True(t, p.MakeWay())
}
