package ingest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/domain"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A jumpyClock returns the system time plus an offset that a test can increase.
type jumpyClock struct {
	mu     sync.Mutex
	ahead  time.Duration
	timers map[*jumpyTimer]struct{}
}

type jumpyTimer struct {
	clock *jumpyClock
	due   time.Time
	timer *time.Timer
}

func (c *jumpyClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *jumpyClock) AfterFunc(d time.Duration, f func()) embedded.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timers == nil {
		c.timers = make(map[*jumpyTimer]struct{})
	}
	t := &jumpyTimer{clock: c, due: time.Now().Add(c.ahead + d)}
	t.timer = time.AfterFunc(d, func() {
		if t.isOver() {
			f()
		}
	})
	c.timers[t] = struct{}{}
	return t
}

// isOver stops the timer, and reports whether it was still running.
func (t *jumpyTimer) isOver() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, running := t.clock.timers[t]
	delete(t.clock.timers, t)
	return running
}

func (t *jumpyTimer) Stop() bool {
	t.timer.Stop()
	return t.isOver()
}

// moveAhead moves the clock ahead by d, which makes locks expire.
func (c *jumpyClock) moveAhead(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	for t := range c.timers {
		t.timer.Reset(max(0, time.Until(t.due.Add(-c.ahead))))
	}
}

const pastLocks = 61 * time.Second

// Locks expire during a save, and the bus delivers the messages again. No event is lost or stored
// twice.
func TestIngest_LosesAndDuplicatesNothingWhenLocksExpire(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		clock := &jumpyClock{}
		s := newSite(t, func(o *embedded.Options) { o.Clock = clock })
		actor := rt.NewActor()
		events := rt.Events(20, actor)
		const enough = time.Second // long enough to receive more messages and to notice the lost lock
		late := func(next func()) *storeFault {
			f := func(context.Context, []domain.Event) error {
				next()
				<-time.After(enough)
				clock.moveAhead(pastLocks)
				<-time.After(enough)
				return nil
			}
			return &f
		}
		s.hub.before.Store(late(func() { // the first save loses its lock before it stores events; the next successful save loses its lock afterwards
			s.hub.before.Store(nil)
			s.hub.after.Store(late(func() { s.hub.after.Store(nil) }))
		}))
		stop := s.startIngestion(func(o *ingest.Options) { o.Clock = clock.Now })
		s.sendByNewClient(queue, events)
		s.waitUntilStored(len(events))
		eventually(t, "redeliveries", func() bool { return s.metric("events_duplicates_total") > 0 })
		stop()
		require.Positive(t, s.metric("locks_lost_total", queue))
		require.Empty(t, s.deliveryCounts(sessionOf(queue, actor)))
		s.has(actor, events...)
		require.Zero(t, s.metric("inversions_total"))
	})
}

// serveOnPort serves the bus on a port, and returns a function that creates clients of the bus.
func (s *ingestSite) serveOnPort() func() (*azservicebus.Client, error) {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.bus.Load().Serve(ctx, listener, embedded.ServeOptions{}) }()
	s.Cleanup(func() {
		cancel()
		require.NoError(s, <-served)
	})
	return func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(s.bus.Load().ConnectionString(listener.Addr().String()),
			&azservicebus.ClientOptions{RetryOptions: busclient.Retries()})
	}
}

// Two consumers run over TCP with 64 sessions and faults of every kind. Each event is stored once,
// and the events of each cabinet are stored in order. The environment variable MESSAGEHUB_CHAOS
// sets the number of seeds.
func TestTwoConsumers_StoreEventsOnceAndInOrderInSpiteOfFaults(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("MESSAGEHUB_CHAOS"))
	if err != nil {
		seeds = 1
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { chaos(t, seed) })
	}
}

func chaos(t *testing.T, seed uint64) {
	const actors, each, disasters = 64, 24, 10
	random := rand.New(rand.NewPCG(seed, 64))
	clock := &jumpyClock{}
	s := newSite(t, withLocks("PT1M", 1000), func(o *embedded.Options) { o.Clock = clock })
	open := s.serveOnPort()
	s.hub.failAtRandom(seed)

	var stops [2]func()
	starts := func() func() {
		return s.startIngestion(func(o *ingest.Options) {
			o.Open, o.Clock, o.SessionQueue, o.Queue = open, clock.Now, fifo, ""
			o.Registerer = nil
			o.Grace = time.Duration(1 + random.IntN(2)*int(time.Second)) // almost no grace period in half of the runs
			o.Limits.Turn = 50 * time.Millisecond
			o.Sessions = 40
		})
	}
	for i := range stops {
		stops[i] = starts()
	}

	sent := make([][]domain.Event, actors)
	for i := range sent {
		sent[i] = rt.Events(each, rt.NewActor())
		for n := range sent[i] {
			if random.IntN(3) == 0 {
				rt.WithContentType("other")(&sent[i][n])
			}
		}
	}
	var sending sync.WaitGroup
	sending.Go(func() { s.sendInTurn(open, sent) })

	for disaster := range disasters {
		s.waitUntilStored(actors * each * (disaster + 1) / (disasters + 1))
		switch random.IntN(4) {
		case 0:
			s.bus.Load().DropConnections()
		case 1:
			clock.moveAhead(pastLocks)
		default: // a process ends while it holds messages, and another process starts
			one := random.IntN(2)
			stops[one]()
			stops[one] = starts()
		}
	}
	s.waitUntilStored(actors * each)
	sending.Wait()
	for _, stop := range stops {
		stop()
	}
	for _, events := range sent {
		require.Equal(t, byCabinet(events), s.storedByCabinet(events[0].Recipient))
	}
}

// sendInTurn sends events to the actors alternately. It resends an event that may not have arrived.
func (s *ingestSite) sendInTurn(open func() (*azservicebus.Client, error), sent [][]domain.Event) {
	client, err := open()
	require.NoError(s, err)
	defer client.Close(context.Background())
	out, err := client.NewSender(fifo, nil)
	require.NoError(s, err)
	to := &queueSender{s.T, out, true}
	for n := range sent[0] {
		for i := range sent {
			for to.SendMessage(s.Context(), to.message(sent[i][n]), nil) != nil {
				require.NoError(s, s.Context().Err())
			}
		}
	}
}

// failAtRandom makes one in eight calls to Ingest fail, either before or after storing the events.
func (h *faultyHub) failAtRandom(seed uint64) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 128))
	f := func(context.Context, []domain.Event) error {
		mu.Lock()
		defer mu.Unlock()
		switch random.IntN(16) {
		case 0:
			return domain.Errorf(domain.Uncertain, "no answer")
		default:
			return nil
		}
	}
	h.before.Store(&f)
	h.after.Store(&f)
}

func byCabinet(events []domain.Event) map[domain.CabinetKey][]domain.EventID {
	ids := make(map[domain.CabinetKey][]domain.EventID)
	for i := range events {
		key := events[i].Cabinet()
		ids[key] = append(ids[key], events[i].ID)
	}
	return ids
}

func (s *ingestSite) storedByCabinet(actor domain.ActorID) map[domain.CabinetKey][]domain.EventID {
	s.Helper()
	got, err := rt.Drain(context.Background(), rt.Stores{Events: s.store, Bundles: s.store, Content: s.store}, actor, rt.AllGroups)
	require.NoError(s, err)
	var events []domain.Event
	for _, b := range got {
		for i := range b.Events {
			events = append(events, b.Events[i].Event)
		}
	}
	return byCabinet(events)
}
