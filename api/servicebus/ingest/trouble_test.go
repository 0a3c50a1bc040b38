package ingest_test

import (
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/domain"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// onBoth runs a test with fake time for two queues: one with and one without sessions.
func onBoth(t *testing.T, test func(t *testing.T, queue string)) {
	for _, queue := range []string{fifo, plainRecipient} {
		t.Run(queue, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { test(t, queue) })
		})
	}
}

// sessionOf returns the session of an actor in a queue.
func sessionOf(queue string, actor domain.ActorID) string {
	if queue == fifo {
		return actor.String()
	}
	return ""
}

// temporaryErrors are errors that may be temporary.
var temporaryErrors = []error{
	domain.Errorf(domain.Busy, "throttled"),
	domain.Errorf(domain.Unavailable, "not there"),
	domain.Errorf(domain.Uncertain, "no answer"),
	domain.Errorf(domain.Conflict, "lost the race"),
	errBroken,
	context.DeadlineExceeded,
}

// The store fails for much longer than a lock lasts. The messages stay locked without further
// deliveries, and are stored when the store works again.
func TestMessagesAreHeldWhileTheStoreFails(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		for _, trouble := range temporaryErrors {
			s := newSite(t, withLocks("PT1M", 2))
			s.hub.before.Store(failWith(trouble))
			stop := s.startIngestion()
			actor := rt.NewActor()
			events := rt.Events(5, actor)
			out := s.sender(queue)
			for _, e := range events {
				out.sendEvents(e)
			}
			<-time.After(150 * time.Second)
			require.EqualValues(t, len(events), s.metric("messages_received_total"), trouble)
			require.EqualValues(t, 1, s.metric("sessions_holding"), trouble)
			require.Positive(t, s.metric("save_retries_total"))
			s.hub.before.Store(nil)
			s.waitUntilStored(len(events))
			stop()
			require.EqualValues(t, len(events), s.metric("messages_received_total"), "none was delivered again")
			require.Zero(t, s.metric("locks_lost_total"))
			require.Zero(t, s.metric("sessions_holding"))
			s.has(actor, events...)
			require.Empty(t, s.deliveryCounts(sessionOf(queue, actor)))
		}
	})
}

// The saves of some recipients hang, more than the limit of concurrent saves. The events of other
// recipients are stored without delay.
func TestFailingRecipientsDoNotDelayOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		stuck := map[domain.ActorID]bool{}
		hang := func(ctx context.Context, events []domain.Event) error {
			if !stuck[events[0].Recipient] {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		out := s.sender(fifo)
		for range 10 {
			actor := rt.NewActor()
			stuck[actor] = true
			out.sendEvents(rt.Event(actor))
		}
		s.hub.before.Store(&hang)
		stop := s.startIngestion(func(o *ingest.Options) { o.Limits.Saves = 4 })
		<-time.After(10 * time.Second)
		other := rt.Event(rt.NewActor())
		began := time.Now()
		out.sendEvents(other)
		s.waitUntilStored(1)
		require.Less(t, time.Since(began), time.Second)
		s.hub.before.Store(nil)
		s.waitUntilStored(11)
		stop()
	})
}

// A farBus is a connection that delays each reply of the bus.
type farBus struct {
	net.Conn
	last time.Time
}

func (c *farBus) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if time.Since(c.last) > 500*time.Millisecond {
		<-time.After(150 * time.Millisecond)
	}
	c.last = time.Now()
	return n, err
}

// The renewal of a lock waits while its message is settled, and then finds no lock. This does not
// count as a lost lock.
func TestRenewal_OfASettledMessageIsNotALoss(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, withLocks("PT1M", 2))
		s.wire = func(c net.Conn) net.Conn { return &farBus{c, time.Now()} }
		s.hub.before.Store(new(func(context.Context, []domain.Event) error {
			<-time.After(14900 * time.Millisecond) // shortly before the lock is renewed, after 15 s
			return nil
		}))
		s.sender(plainRecipient).sendEvents(rt.Event(rt.NewActor()))
		stop := s.startIngestion(func(o *ingest.Options) { o.SessionQueue = "" })
		s.waitUntilStored(1)
		<-time.After(5 * time.Second)
		require.Zero(t, s.metric("locks_lost_total"))
		stop()
	})
}

// A distant bus reports only after the client's timeout that no session has a message. Ingestion
// does not log this as a failure.
func TestAnIdleQueueOfADistantBusLogsNoFailure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.wire = func(c net.Conn) net.Conn { return &farBus{c, time.Now()} }
		stop := s.startIngestion(func(o *ingest.Options) { o.Queue = "" })
		<-time.After(time.Second)
		require.Empty(t, s.connectedMetric(), "not 0, which would be an outage")
		<-time.After(4300 * time.Millisecond) // shortly before the end of the first request for a session, which takes 5 s
		require.False(t, s.logs.has("cannot be received from"))
		require.EqualValues(t, 1, s.metric("connected"))
		require.Equal(t, []float64{1}, s.connectedMetric())
		stop()
	})
}

// connectedMetric returns the values of the metric messagehub_servicebus_connected.
func (s *ingestSite) connectedMetric() (values []float64) {
	s.Helper()
	families, err := s.registry.Gather()
	require.NoError(s, err)
	for _, f := range families {
		if f.GetName() == "messagehub_servicebus_connected" {
			for _, m := range f.GetMetric() {
				values = append(values, m.GetGauge().GetValue())
			}
		}
	}
	return values
}

// A process is stopped while the store fails. It returns its messages to the bus without counting a
// delivery.
func TestRun_ReturnsUnstoredMessagesAfterItsGrace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.hub.before.Store(failWith(errBroken))
		const grace = 10 * time.Second
		stop := s.startIngestion(func(o *ingest.Options) { o.Grace = grace })
		actor := rt.NewActor()
		events := rt.Events(5, actor)
		out := s.sender(fifo)
		for _, e := range events {
			out.sendEvents(e)
		}
		<-time.After(time.Minute)
		began := time.Now()
		stop()
		require.Less(t, time.Since(began), grace+ingest.CloseTimeout)
		r, err := s.newClient().AcceptSessionForQueue(t.Context(), fifo, actor.String(), nil)
		require.NoError(t, err)
		for range events {
			got, err := r.ReceiveMessages(t.Context(), 1, nil)
			require.NoError(t, err)
			require.EqualValues(t, 1, got[0].DeliveryCount)
		}
	})
}

func TestRun_EndsImmediatelyAfterErrAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.hub.before.Store(failWith(errBroken))
		end := s.runIngestion(ingest.Options{Hub: s.hub, Open: s.client, SessionQueue: fifo, Queue: plainRecipient, Grace: time.Hour})
		s.sender(fifo).sendEvents(rt.Event(rt.NewActor()))
		<-time.After(time.Minute)
		began := time.Now()
		end(ingest.ErrAtOnce)
		require.Less(t, time.Since(began), ingest.CloseTimeout)
	})
}

// The store stores events but reports an error. The retry stores no event twice.
func TestIngest_DuplicatesNothingIfTheStoresReplyIsLost(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		s := newSite(t)
		random := rand.New(rand.NewPCG(3, 4))
		lose := func(context.Context, []domain.Event) error {
			if random.IntN(2) == 0 {
				return domain.Errorf(domain.Uncertain, "no answer")
			}
			return nil
		}
		s.hub.after.Store(&lose)
		stop := s.startIngestion()
		actor := rt.NewActor()
		events := rt.Events(30, actor)
		out := s.sender(queue)
		for _, e := range events {
			out.sendEvents(e)
		}
		s.waitUntilStored(len(events))
		stop()
		s.has(actor, events...)
		require.Empty(t, s.deliveryCounts(sessionOf(queue, actor)))
		require.Zero(t, s.metric("inversions_total"))
	})
}

func TestTheGraceIsEnoughForHeldMessages(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		s := newSite(t)
		actor := rt.NewActor()
		events := rt.Events(40, actor)
		out := s.sender(queue)
		for _, e := range events {
			out.sendEvents(e)
		}
		saving := make(chan struct{})
		slow := func(context.Context, []domain.Event) error {
			s.hub.before.Store(nil)
			close(saving)
			<-time.After(3 * time.Second) // time for receiving more messages
			return nil
		}
		s.hub.before.Store(&slow)
		stop := s.startIngestion()
		<-saving
		stop()
		received := int(s.metric("messages_received_total"))
		require.Positive(t, received)
		require.Len(t, s.deliveryCounts(sessionOf(queue, actor)), len(events)-received, "what was received is stored and completed")
		s.has(actor, events[:received]...)
		require.Zero(t, s.metric("messages_unsettled_total"))
	})
}

func TestAnUnavailableBusIsRetried(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		dir := t.TempDir()
		s := newSite(t, func(o *embedded.Options) { o.Dir = dir })
		stop := s.startIngestion()
		actor := rt.NewActor()
		events := rt.Events(20, actor)
		s.sendByNewClient(queue, events[:10])
		s.waitUntilStored(10)
		eventually(t, "a connection", func() bool { return s.metric("connected", queue) == 1 })
		require.NoError(t, s.bus.Load().Close())
		eventually(t, "no connection", func() bool { return s.metric("connected", queue) == 0 })
		<-time.After(10 * time.Minute)
		require.True(t, s.logs.has("the queue cannot be received from; trying again"))
		s.openNamespace()
		s.sendByNewClient(queue, events[10:])
		s.waitUntilStored(20)
		eventually(t, "a connection", func() bool { return s.metric("connected", queue) == 1 })
		require.True(t, s.logs.has("the queue can be received from again"))
		stop()
		s.has(actor, events...)
		require.Zero(t, s.metric("inversions_total"))
	})
}

// sendByNewClient sends events one by one over a new connection.
func (s *ingestSite) sendByNewClient(queue string, events []domain.Event) {
	s.Helper()
	out := s.sender(queue)
	for _, e := range events {
		out.sendEvents(e)
	}
}

// The keys of a namespace are changed while it is in use. Ingestion logs that the bus refuses the
// key, until a new client uses the new keys.
func TestIngest_UsesChangedKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		dir := t.TempDir()
		s := newSite(t, func(o *embedded.Options) { o.Dir = dir })
		stop := s.startIngestion()
		actor := rt.NewActor()
		events := rt.Events(2, actor)
		s.sendByNewClient(queue, events[:1])
		s.waitUntilStored(1)

		require.NoError(t, s.bus.Load().Close())
		rotated := embedded.Key{Name: embedded.WellKnownKeyName, Secret: "another secret", Rights: embedded.All}
		s.options.Keys = []embedded.Key{rotated}
		s.openNamespace()
		eventually(t, "a complaint", func() bool { return s.logs.has("credentials") && s.metric("connected", queue) == 0 })

		s.key.Store(&rotated)
		s.sendByNewClient(queue, events[1:])
		s.waitUntilStored(2)
		eventually(t, "a connection", func() bool { return s.metric("connected", queue) == 1 })
		stop()
		s.has(actor, events...)
	})
}

func TestIngest_UsesAMissingQueueOnceItIsCreated(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		dir := t.TempDir()
		s := newSite(t, func(o *embedded.Options) { o.Dir, o.Entities = dir, embedded.Entities{} })
		stop := s.startIngestion()
		eventually(t, "a complaint", func() bool { return s.logs.has("create the queue") })
		require.NoError(t, s.bus.Load().Close())
		s.options.Entities = queues()
		s.openNamespace()
		actor := rt.NewActor()
		events := rt.Events(3, actor)
		s.sendByNewClient(queue, events)
		s.waitUntilStored(3)
		stop()
		s.has(actor, events...)
	})
}

func TestIngest_LosesAndDuplicatesNothingWhenConnectionsDrop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		stop := s.startIngestion()
		var sent [4][]domain.Event
		for i := range sent {
			sent[i] = rt.Events(40, rt.NewActor())
		}
		for n := range 40 {
			if n%8 == 7 {
				s.bus.Load().DropConnections()
			}
			for i := range sent {
				s.sendByNewClient(fifo, sent[i][n:n+1])
			}
			<-time.After(time.Millisecond)
		}
		s.waitUntilStored(4 * 40)
		stop()
		for i := range sent {
			s.has(sent[i][0].Recipient, sent[i]...)
		}
		require.Zero(t, s.metric("inversions_total"))
	})
}
