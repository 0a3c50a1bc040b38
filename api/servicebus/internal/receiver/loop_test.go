package receiver

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
)

const (
	withSessions    = "with-sessions"
	withoutSessions = "without-sessions"
	session         = "s"
)

// A meterReading is the content of a message: a number.
type meterReading int

// A meterStore is a Handler that stores meter readings.
type meterStore struct {
	loop *Loop[meterReading]

	mu     sync.Mutex
	stored []meterReading
	dead   []string
	stores int
	gate   chan struct{} // if not nil, Store waits until gate is closed
	fails  error         // if not nil, Store abandons its messages and fails the loop with this error
}

func (r *meterStore) Decode(m *azservicebus.ReceivedMessage) (meterReading, int, *Rejection) {
	n, err := strconv.Atoi(string(m.Body))
	if err != nil {
		return 0, len(m.Body), &Rejection{Reason: "no-number", Description: err.Error()}
	}
	return meterReading(n), len(m.Body), nil
}

func (r *meterStore) Store(_ context.Context, batch []*Message[meterReading]) {
	if r.gate != nil {
		<-r.gate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stores++
	if r.fails != nil {
		r.loop.Abandon(batch...)
		r.loop.Fail(r.fails)
		return
	}
	for _, m := range batch {
		r.stored = append(r.stored, m.Content)
		r.loop.Settle(m)
	}
}

func (r *meterStore) DeadLettered(m *Message[meterReading]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = append(r.dead, m.Rejection.Reason)
}

// A yieldingSession is a Fairness that makes its session yield at every opportunity.
type yieldingSession struct{}

func (yieldingSession) Wanted() <-chan struct{} {
	wanted := make(chan struct{})
	close(wanted)
	return wanted
}

func (yieldingSession) MakeWay() bool { return true }

// An onlySession is a Fairness for the only session of a queue.
type onlySession struct{}

func (onlySession) Wanted() <-chan struct{} { return nil }

func (onlySession) MakeWay() bool { return false }

// A busSite is a bus with two queues: one with and one without sessions.
type busSite struct {
	*testing.T
	bus    *embedded.Namespace
	client *azservicebus.Client
}

func newBusSite(t *testing.T) *busSite {
	t.Helper()
	var e embedded.Entities
	e.Queues = []embedded.QueueSetup{{Name: withSessions}, {Name: withoutSessions}}
	e.Queues[0].Properties.RequiresSession = true
	bus := bustest.Open(t, embedded.Options{Entities: e})
	client, err := bustest.Clients(bus)()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return &busSite{t, bus, client}
}

func (b *busSite) sendMessages(queue string, bodies ...string) {
	b.Helper()
	s, err := b.client.NewSender(queue, nil)
	require.NoError(b, err)
	for _, body := range bodies {
		m := &azservicebus.Message{Body: []byte(body)}
		if queue == withSessions {
			id := session
			m.SessionID = &id
		}
		require.NoError(b, s.SendMessage(b.Context(), m, nil))
	}
	require.NoError(b, s.Close(b.Context()))
}

// newLoopOf returns a loop for one of the queues. m stores its messages.
func (b *busSite) newLoopOf(queue string, m *meterStore, fairness Fairness) *Loop[meterReading] {
	b.Helper()
	o := Options[meterReading]{
		Queue: queue, Handler: m, InHand: NewBudget(100, 1000), Stores: semaphore.NewWeighted(1),
		Limits:  Limits{Messages: 10, Bytes: 1000, Settle: time.Second, Linger: time.Second, Turn: time.Minute, TurnMessages: 1000},
		Metrics: NewMetrics(nil), Logger: slog.New(slog.DiscardHandler), Clock: time.Now,
	}
	if queue == withSessions {
		r, err := b.client.AcceptSessionForQueue(b.Context(), queue, session, nil)
		require.NoError(b, err)
		m.loop = NewSession(o, r, fairness)
	} else {
		r, err := b.client.NewReceiverForQueue(queue, nil)
		require.NoError(b, err)
		m.loop = NewQueue(o, r)
	}
	return m.loop
}

// runLoop runs a loop until ctx ends. The loop then finishes the held messages.
func (b *busSite) runLoop(ctx context.Context, l *Loop[meterReading]) (err error) {
	err = l.Run(ctx, context.WithoutCancel(ctx))
	l.Close(context.Background())
	return err
}

func onBoth(t *testing.T, test func(b *busSite, queue string)) {
	t.Helper()
	for _, queue := range []string{withSessions, withoutSessions} {
		t.Run(queue, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(newBusSite(t), queue) })
		})
	}
}

func TestLoop_StoresMessagesInOrder(t *testing.T) {
	onBoth(t, func(b *busSite, queue string) {
		var want []meterReading
		for n := range 30 { // the loop must not hold all of these messages at once
			want = append(want, meterReading(n))
			b.sendMessages(queue, strconv.Itoa(n))
		}
		m := &meterStore{}
		ctx, stop := context.WithTimeout(b.Context(), 500*time.Millisecond)
		defer stop()
		l := b.newLoopOf(queue, m, onlySession{})
		require.NoError(b, b.runLoop(ctx, l))
		require.Equal(b, want, m.stored)
		require.Equal(b, 30, l.Received())
		require.Zero(b, b.bus.Stats().Active, "they are completed")
	})
}

func TestLoop_DeadLettersOnlyTheRejectedMessage(t *testing.T) {
	onBoth(t, func(b *busSite, queue string) {
		b.sendMessages(queue, "1", "two", "3")
		m := &meterStore{}
		ctx, stop := context.WithTimeout(b.Context(), 500*time.Millisecond)
		defer stop()
		require.NoError(b, b.runLoop(ctx, b.newLoopOf(queue, m, onlySession{})))
		require.Equal(b, []meterReading{1, 3}, m.stored)
		require.Equal(b, []string{"no-number"}, m.dead)
		require.Zero(b, b.bus.Stats().Active)
		require.EqualValues(b, 1, b.bus.Stats().DeadLetters)
	})
}

func TestLoop_BatchesMessagesThatArriveDuringAStore(t *testing.T) {
	onBoth(t, func(b *busSite, queue string) {
		b.sendMessages(queue, "0")
		m := &meterStore{gate: make(chan struct{})}
		ctx, stop := context.WithCancel(b.Context())
		defer stop()
		done := make(chan error, 1)
		l := b.newLoopOf(queue, m, onlySession{})
		go func() { done <- b.runLoop(ctx, l) }()
		<-time.After(2 * time.Second) // fake time advances while the first Store waits for m.gate
		for n := range 14 {
			b.sendMessages(queue, strconv.Itoa(n+1))
		}
		<-time.After(2 * time.Second)
		stop() // the loop still stores the messages that it holds
		close(m.gate)
		require.NoError(b, <-done)
		require.Len(b, m.stored, 10, "as many as may be in hand")
		require.Equal(b, 2, m.stores, "one store, and one for what came meanwhile")
		require.EqualValues(b, 5, b.bus.Stats().Active)
	})
}

func TestAbandon_ReturnsMessagesToTheBus(t *testing.T) {
	onBoth(t, func(b *busSite, queue string) {
		b.sendMessages(queue, "1", "2")
		errBroken := errors.New("broken")
		require.ErrorIs(b, b.runLoop(b.Context(), b.newLoopOf(queue, &meterStore{fails: errBroken}, onlySession{})), errBroken)
		m := &meterStore{}
		ctx, stop := context.WithTimeout(b.Context(), 2*time.Minute) // long enough for the locks of the messages to expire
		defer stop()
		stopAt := time.AfterFunc(90*time.Second, stop)
		defer stopAt.Stop()
		l := b.newLoopOf(queue, m, onlySession{})
		l.Limits.Linger = 2 * time.Minute
		require.NoError(b, b.runLoop(ctx, l))
		require.ElementsMatch(b, []meterReading{1, 2}, m.stored)
	})
}

func TestSession_EndsWhenIdleOrWhenItYields(t *testing.T) {
	for name, tc := range map[string]struct {
		fairness Fairness
		lasts    time.Duration
		madeWay  bool
	}{
		"alone it lingers":          {onlySession{}, time.Second, false},
		"wanted, it leaves at once": {yieldingSession{}, 20 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBusSite(t)
				b.sendMessages(withSessions, "1")
				m := &meterStore{}
				l := b.newLoopOf(withSessions, m, tc.fairness)
				began := time.Now()
				require.NoError(t, l.Run(t.Context(), t.Context()))
				require.Equal(t, tc.lasts, time.Since(began))
				require.Equal(t, tc.madeWay, l.MadeWay())
				l.Close(t.Context())
				require.Equal(t, []meterReading{1}, m.stored)
			})
		})
	}
}

func TestLocksAreRenewedDuringALongStore(t *testing.T) {
	onBoth(t, func(b *busSite, queue string) {
		b.sendMessages(queue, "1")
		m := &meterStore{gate: make(chan struct{})}
		ctx, stop := context.WithCancel(b.Context())
		defer stop()
		done := make(chan error, 1)
		l := b.newLoopOf(queue, m, onlySession{})
		go func() { done <- b.runLoop(ctx, l) }()
		<-time.After(10 * time.Minute)
		stop()
		close(m.gate)
		require.NoError(b, <-done)
		require.Equal(b, []meterReading{1}, m.stored)
		require.Zero(b, b.bus.Stats().Active, "it was still locked, and is completed")
	})
}
