package ingest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

const fifo, plainRecipient = "dataavailable-fifo", "dataavailable"

// An ingestSite consists of a bus, a hub with a store, and the ingestion from the bus to the hub.
type ingestSite struct {
	*testing.T
	options  embedded.Options
	bus      atomic.Pointer[embedded.Namespace]
	key      atomic.Pointer[embedded.Key] // key with which the clients connect
	wire     func(near net.Conn) net.Conn // wraps each connection of a client; nil for a direct connection
	store    *memory.Store
	hub      *faultyHub
	registry *prometheus.Registry
	logs     logCapture
}

// newSite returns a site whose bus has the queues fifo and plainRecipient. change may modify the
// options of the namespace.
func newSite(t *testing.T, change ...func(*embedded.Options)) *ingestSite {
	t.Helper()
	s := &ingestSite{T: t, store: memory.New(memory.Options{}), registry: prometheus.NewRegistry()}
	s.hub = &faultyHub{Hub: hub.New(s.store, s.store, s.store, hub.Options{})}
	s.options.Entities = queues()
	for _, c := range change {
		c(&s.options)
	}
	s.key.Store(&embedded.Key{Name: embedded.WellKnownKeyName, Secret: embedded.WellKnownKey})
	s.openNamespace()
	t.Cleanup(func() { require.NoError(t, s.bus.Load().Close()) })
	return s
}

func queues() (e embedded.Entities) {
	e.Queues = []embedded.QueueSetup{{Name: fifo}, {Name: plainRecipient}}
	e.Queues[0].Properties.RequiresSession = true
	return e
}

// withLocks sets the duration of locks, and the maximum number of deliveries of a message.
func withLocks(duration string, deliveries uint32) func(*embedded.Options) {
	return func(o *embedded.Options) {
		for i := range o.Entities.Queues {
			o.Entities.Queues[i].Properties.LockDuration = duration
			o.Entities.Queues[i].Properties.MaxDeliveryCount = deliveries
		}
	}
}

// openNamespace opens the namespace, or reopens it.
func (s *ingestSite) openNamespace() {
	s.Helper()
	n, err := embedded.Open(s.options)
	require.NoError(s, err)
	s.bus.Store(n)
}

// client returns a new client of the bus in this process.
func (s *ingestSite) client() (*azservicebus.Client, error) { return s.clientOver(s.wire) }

func (s *ingestSite) clientOver(wire func(net.Conn) net.Conn) (*azservicebus.Client, error) {
	key := s.key.Load()
	text := "Endpoint=sb://embedded.localhost;SharedAccessKeyName=" + key.Name + ";SharedAccessKey=" + key.Secret + ";UseDevelopmentEmulator=true"
	return azservicebus.NewClientFromConnectionString(text, &azservicebus.ClientOptions{
		RetryOptions: busclient.Retries(),
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			near, err := s.bus.Load().Dial(ctx)
			if err != nil || wire == nil {
				return near, err
			}
			return wire(near), nil
		},
	})
}

// newClient returns a client that is closed at the end of the test.
func (s *ingestSite) newClient() *azservicebus.Client {
	s.Helper()
	c, err := s.clientOver(nil)
	require.NoError(s, err)
	s.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// startIngestion runs an Ingestion until stop is called or the test ends.
func (s *ingestSite) startIngestion(change ...func(*ingest.Options)) (stop func()) {
	s.Helper()
	o := ingest.Options{
		Hub: s.hub, Open: s.client, SessionQueue: fifo, Queue: plainRecipient,
		Logger: slog.New(slog.NewTextHandler(&s.logs, &slog.HandlerOptions{Level: slog.LevelDebug})), Registerer: s.registry,
	}
	for _, c := range change {
		c(&o)
	}
	end := s.runIngestion(o)
	return func() { end(nil) }
}

// runIngestion runs an Ingestion until end is called with a cause or the test ends.
func (s *ingestSite) runIngestion(o ingest.Options) (end func(cause error)) {
	s.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- ingest.New(o).Run(ctx) }()
	var once sync.Once
	end = func(cause error) {
		once.Do(func() {
			cancel(cause)
			require.NoError(s, <-done)
		})
	}
	s.Cleanup(func() { end(nil) })
	return end
}

// A queueSender sends announcements to one queue.
type queueSender struct {
	*testing.T
	*azservicebus.Sender
	sessions bool
}

func (s *ingestSite) sender(queue string) *queueSender {
	s.Helper()
	out, err := s.newClient().NewSender(queue, nil)
	require.NoError(s, err)
	return &queueSender{s.T, out, queue == fifo}
}

// sendEvents sends one message that announces events, in the session of the first event's
// recipient.
func (s *queueSender) sendEvents(events ...domain.Event) {
	s.Helper()
	s.sendMessage(s.message(events...))
}

func (s *queueSender) message(events ...domain.Event) *azservicebus.Message {
	m := &azservicebus.Message{Body: decodedBody(events...), ContentType: to.Ptr("application/json")}
	if s.sessions {
		m.SessionID = to.Ptr(events[0].Recipient.String())
	}
	return m
}

func (s *queueSender) sendMessage(m *azservicebus.Message) {
	s.Helper()
	require.NoError(s, s.SendMessage(s.Context(), m, nil))
}

func decodedBody(events ...domain.Event) []byte {
	list := make([]map[string]any, len(events))
	for i, e := range events {
		list[i] = map[string]any{
			"id": e.ID.String(), "recipient": e.Recipient.String(), "origin": e.Origin.String(), "contentType": e.ContentType.String(),
			"documentType": e.DocumentType.String(), "supportsBundling": e.SupportsBundling, "weight": e.Weight,
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return text
}

// stored returns the ids of an actor's events in stored order. It peeks and dequeues the events, so
// a second call does not return them.
func (s *ingestSite) stored(actor domain.ActorID) []domain.EventID {
	s.Helper()
	ids := []domain.EventID{}
	got, err := rt.Drain(context.Background(), rt.Stores{Events: s.store, Bundles: s.store, Content: s.store}, actor, rt.AllGroups)
	require.NoError(s, err)
	for _, b := range got {
		for i := range b.Events {
			ids = append(ids, b.Events[i].ID)
		}
	}
	return ids
}

// has fails the test unless the store contains exactly these events of an actor, in this order.
func (s *ingestSite) has(actor domain.ActorID, events ...domain.Event) {
	s.Helper()
	require.Equal(s, idsOf(events), s.stored(actor))
}

func idsOf(events []domain.Event) []domain.EventID {
	ids := make([]domain.EventID, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	return ids
}

// metric returns the sum of a metric over all series whose labels contain the values in wanted.
func (s *ingestSite) metric(name string, wanted ...string) (sum float64) {
	s.Helper()
	families, err := s.registry.Gather()
	require.NoError(s, err)
	for _, f := range families {
		if f.GetName() != "messagehub_servicebus_"+name && f.GetName() != "messagehub_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(labels, w) }) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// A deadLetterText contains the parts of a dead letter that an operator reads.
type deadLetterText struct{ body, reason, description string }

// deadLetters receives and removes count dead letters of a queue.
func (s *ingestSite) deadLetters(queue string, count int) (dead []deadLetterText) {
	s.Helper()
	r, err := s.newClient().NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter, ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	require.NoError(s, err)
	for len(dead) < count {
		got, err := r.ReceiveMessages(s.Context(), 1, nil)
		require.NoError(s, err)
		for _, m := range got {
			dead = append(dead, deadLetterText{string(m.Body), value(m.DeadLetterReason), value(m.DeadLetterErrorDescription)})
		}
	}
	require.NoError(s, r.Close(s.Context()))
	return dead
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// deliveryCounts returns the delivery counts of the messages in a session, or in the queue without
// sessions if session is "".
func (s *ingestSite) deliveryCounts(session string) (counts []uint32) {
	s.Helper()
	c := s.newClient()
	var r interface {
		PeekMessages(context.Context, int, *azservicebus.PeekMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
		Close(context.Context) error
	}
	r, err := c.NewReceiverForQueue(plainRecipient, nil)
	if session != "" {
		r, err = c.AcceptSessionForQueue(s.Context(), fifo, session, nil)
	}
	require.NoError(s, err)
	for {
		got, err := r.PeekMessages(s.Context(), 100, nil)
		require.NoError(s, err)
		if len(got) == 0 {
			break
		}
		for _, m := range got {
			counts = append(counts, m.DeliveryCount)
		}
	}
	require.NoError(s, r.Close(s.Context()))
	return counts
}

// logCapture records the log.
type logCapture struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logCapture) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logCapture) has(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), what)
}

// inBubble runs a test with fake time (testing/synctest): waiting takes no real time.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// eventually waits, in fake time, until a condition is true. It fails the test after a time limit.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for waited := time.Duration(0); !is(); waited += 50 * time.Millisecond {
		require.Less(t, waited, time.Hour, "in vain: %s", what)
		<-time.After(50 * time.Millisecond)
	}
}
