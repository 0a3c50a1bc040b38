package objectevents_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/api/servicebus/objectevents"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

const queue = "object-events"

// record returns an event that reports that the object key was created.
func record(key string) string {
	return fmt.Sprintf(`{"eventTime":"2026-03-01T12:00:00Z","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"readings"},"object":{"key":%q,"sequencer":"01"}}}`, key)
}

func records(all ...string) string { return `{"Records":[` + strings.Join(all, ",") + `]}` }

// An objectSite has a bus, and a ledger with a store that may fail.
type objectSite struct {
	*testing.T
	bus      *embedded.Namespace
	client   *azservicebus.Client
	objects  *memory.Objects
	registry *prometheus.Registry

	mu   sync.Mutex
	errs map[string]error // errors that the store returns, by object key
	logs bytes.Buffer
}

func newSite(t *testing.T) *objectSite {
	t.Helper()
	bus := bustest.Open(t, embedded.Options{Entities: embedded.Entities{Queues: []embedded.QueueSetup{{Name: queue}}}})
	client, err := bustest.Clients(bus)()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return &objectSite{T: t, bus: bus, client: client, objects: memory.NewObjects(), registry: prometheus.NewRegistry(), errs: map[string]error{}}
}

// Ingest stores reports unless errs contains an error for their keys. It implements
// repository.Objects.
func (s *objectSite) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	results := make([]repository.ObjectResult, len(reports))
	for i := range reports {
		s.mu.Lock()
		err := s.errs[reports[i].Name.Key()]
		s.mu.Unlock()
		if results[i].Err = err; err != nil {
			continue
		}
		one, err := s.objects.Ingest(ctx, reports[i:i+1])
		if err != nil {
			return nil, err
		}
		results[i] = one[0]
	}
	return results, nil
}

func (s *objectSite) setFailure(key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs[key] = err
}

// Write collects the log.
func (s *objectSite) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs.Write(p)
}

// eventStore is a store of objects that delegates Ingest to the site.
type eventStore struct {
	*memory.Objects
	site *objectSite
}

func (s eventStore) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	return s.site.Ingest(ctx, reports)
}

// startReceiver runs a Receiver until stop is called or the test ends.
func (s *objectSite) startReceiver(change ...func(*objectevents.Options)) (stop func()) {
	o := objectevents.Options{
		Ledger: ledger.New(ledger.Ports{Objects: eventStore{s.objects, s}}, ledger.Options{}), Open: bustest.Clients(s.bus), Queue: queue,
		Logger: slog.New(slog.NewTextHandler(s, nil)), Registerer: s.registry,
	}
	for _, c := range change {
		c(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		objectevents.New(o).Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.Cleanup(stop)
	return stop
}

// sendMessages sends messages with the ids 0, 1 and so on.
func (s *objectSite) sendMessages(bodies ...string) {
	s.Helper()
	out, err := s.client.NewSender(queue, nil)
	require.NoError(s, err)
	for i, body := range bodies {
		id := fmt.Sprint(i)
		require.NoError(s, out.SendMessage(s.Context(), &azservicebus.Message{Body: []byte(body), MessageID: &id}, nil))
	}
	require.NoError(s, out.Close(s.Context()))
}

// waitInBubble advances fake time by d. It returns when all work that was due is done.
func waitInBubble(d time.Duration) { <-time.After(d) }

// keys returns the keys of the stored objects, each with its number of duplicate events.
func (s *objectSite) keys() map[string]int64 {
	s.Helper()
	page, err := s.objects.List(context.Background(), repository.ObjectRange{Bucket: "readings"}, 100)
	require.NoError(s, err)
	found := map[string]int64{}
	for i := range page.Objects {
		found[page.Objects[i].Name.Key()] = page.Objects[i].Duplicates
	}
	return found
}

// deadLetters returns the reason and the description of each dead letter, by message id.
func (s *objectSite) deadLetters() map[string][2]string {
	s.Helper()
	r, err := s.client.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	require.NoError(s, err)
	defer func() { _ = r.Close(context.Background()) }()
	found := map[string][2]string{}
	peeked, err := r.PeekMessages(context.Background(), 100, nil)
	require.NoError(s, err)
	for _, m := range peeked {
		found[m.MessageID] = [2]string{*m.DeadLetterReason, *m.DeadLetterErrorDescription}
	}
	return found
}

// metric returns the value of the counter name for the given label value.
func (s *objectSite) metric(name, label string) float64 {
	s.Helper()
	families, err := s.registry.Gather()
	require.NoError(s, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "messagehub_servicebus_"+name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func inBubble(t *testing.T, test func(s *objectSite)) {
	t.Helper()
	bustest.InBubble(func(t *testing.T) { test(newSite(t)) })(t)
}

func TestEventsOfAQueueAreStored(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		s.sendMessages(records(record("a"), record("b")), record("c"), records(record("a")))
		stop := s.startReceiver()
		waitInBubble(time.Second)
		require.Equal(s, map[string]int64{"a": 1, "b": 0, "c": 0}, s.keys())
		require.Zero(s, s.bus.Stats().Active, "they are completed")
		require.Empty(s, s.deadLetters())
		require.EqualValues(s, 3, s.metric("object_events_total", "stored"))
		require.EqualValues(s, 1, s.metric("object_events_total", "duplicate"))
		stop()
		problems, err := testutil.GatherAndLint(s.registry)
		require.NoError(s, err)
		require.Empty(s, problems)
	})
}

func TestAMessageWithoutAValidEventIsADeadLetter(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		s.sendMessages(
			records(`{}`, `{"eventName":"ObjectCreated:Put"}`), // message 0
			"{",                        // message 1
			`[]`,                       // message 2
			records(record("a"), `{}`), // message 3
			records(`{"eventName":"ObjectTagging:Put"}`, `{}`),           // message 4
			`{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":""}`, // message 5
			records(record("1"), record("2"), record("3")),               // message 6
			record(strings.Repeat("k", 700)),                             // message 7
		)
		s.startReceiver(func(o *objectevents.Options) { o.Events, o.Body = 2, 700 })
		waitInBubble(time.Second)
		dead := s.deadLetters()
		reasons := map[string]string{}
		for id, d := range dead {
			reasons[id] = d[0]
		}
		require.Equal(s, map[string]string{"0": "unknown-form", "1": "not-json", "2": "no-events", "6": "too-many-events", "7": "body-too-large"}, reasons)
		require.Contains(s, dead["0"][1], "2 events cannot be stored.\nevent 0 at \"/Records/0\": unknown-form: ")
		require.Contains(s, dead["0"][1], "\nevent 1 at \"/Records/1/s3\": missing-field: ")
		require.Equal(s, map[string]int64{"a": 0}, s.keys())
		require.Zero(s, s.bus.Stats().Active)
		require.EqualValues(s, 2, s.metric("object_events_total", "ignored"))
		require.EqualValues(s, 4, s.metric("object_events_total", "refused"))
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Contains(s, s.logs.String(), "events of a message cannot be stored; the others are")
	})
}

func TestEventsThatAreTooOldAreCountedAndLogged(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		s.objects = memory.NewObjectsWithRetention(repository.ObjectKeeping{Retention: domain.ObjectRetention(time.Hour), Clock: time.Now})
		old := func(key string) string { return strings.Replace(record(key), "2026-", "1999-", 1) }
		s.sendMessages(records(old("a"), old("b")), old("c"))
		s.startReceiver()
		waitInBubble(time.Second)
		require.Empty(s, s.keys())
		require.Zero(s, s.bus.Stats().Active, "they are completed")
		require.Empty(s, s.deadLetters())
		require.EqualValues(s, 3, s.metric("object_events_total", "too-old"))
		require.Zero(s, s.metric("object_events_total", "stored"))
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Contains(s, s.logs.String(), "events came later than objects.retention")
	})
}

func TestOnlyTheMessageForAFullPartitionIsADeadLetter(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		s.setFailure("full", fmt.Errorf("%w: %w", repository.ErrPartitionFull, domain.Errorf(domain.Unavailable, "403")))
		s.sendMessages(record("a"), records(record("b"), record("full"), record("c")), record("d"))
		s.startReceiver()
		waitInBubble(time.Second)
		dead := s.deadLetters()
		require.Len(s, dead, 1)
		require.Equal(s, "partition-full", dead["1"][0])
		require.Contains(s, dead["1"][1], `"full" in "readings"`)
		require.Equal(s, map[string]int64{"a": 0, "b": 0, "c": 0, "d": 0}, s.keys())
		require.Zero(s, s.bus.Stats().Active)
	})
}

func TestAMessageIsHeldWhileTheStoreFailsAndOthersAreStored(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		s.setFailure("a", domain.Errorf(domain.Unavailable, "down"))
		s.sendMessages(records(record("a"), record("b")), record("c"))
		s.startReceiver()
		waitInBubble(10 * time.Minute)
		require.Equal(s, map[string]int64{"b": 0, "c": 0}, s.keys(), "what is stored is not sent to the store again")
		require.EqualValues(s, 1, s.bus.Stats().Active, "the other message is completed")
		s.setFailure("a", nil)
		waitInBubble(time.Minute)
		require.Equal(s, map[string]int64{"a": 0, "b": 0, "c": 0}, s.keys())
		require.Zero(s, s.bus.Stats().Active)
		require.Empty(s, s.deadLetters())
		require.Positive(s, s.metric("object_events_retries_total", ""))
	})
}

// When parked messages use half of the loop's capacity, the queue waits.
func TestFailingStore_ParksMessagesUpToHalfTheCapacity(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		var bodies []string
		want := map[string]int64{}
		for i := range 300 {
			key := fmt.Sprintf("%03d", i)
			bodies = append(bodies, record(key))
			s.setFailure(key, domain.Errorf(domain.Unavailable, "down"))
			want[key] = 0
		}
		s.sendMessages(bodies...)
		s.startReceiver()
		waitInBubble(10 * time.Minute)
		require.Empty(s, s.keys())
		require.EqualValues(s, 300, s.bus.Stats().Active)
		for key := range want {
			s.setFailure(key, nil)
		}
		waitInBubble(2 * time.Minute)
		require.Len(s, s.keys(), 100, "a page")
		require.Zero(s, s.bus.Stats().Active)
		require.Empty(s, s.deadLetters())
		require.EqualValues(s, 300, s.metric("object_events_total", "stored"))
	})
}

func TestADamagedObjectIsADeadLetterAfterRepeatedReports(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		s.setFailure("a", domain.Errorf(domain.Damaged, "two documents contradict each other"))
		s.sendMessages(record("a"), record("b"))
		s.startReceiver()
		waitInBubble(time.Minute)
		require.Equal(s, "damaged", s.deadLetters()["0"][0])
		require.Equal(s, map[string]int64{"b": 0}, s.keys())
		require.Zero(s, s.bus.Stats().Active)
	})
}

func TestAnObjectOfANewerFormatDoesNotHoldTheQueue(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		s.setFailure("a", domain.Errorf(domain.NewerFormat, "format 2"))
		s.sendMessages(record("a"))
		s.startReceiver()
		waitInBubble(10 * time.Second)
		s.sendMessages(record("b"))
		waitInBubble(10 * time.Second)
		require.Equal(s, map[string]int64{"b": 0}, s.keys())
		s.setFailure("a", nil)
		waitInBubble(2 * time.Minute) // fake time passes until the lock of the message expires
		require.Equal(s, map[string]int64{"a": 0, "b": 0}, s.keys())
		require.Empty(s, s.deadLetters())
	})
}

func TestRun_ReturnsItsMessagesWhenItEnds(t *testing.T) {
	inBubble(t, func(s *objectSite) {
		s.setFailure("a", domain.Errorf(domain.Unavailable, "down"))
		s.sendMessages(record("a"))
		stop := s.startReceiver(func(o *objectevents.Options) { o.Grace = time.Second })
		waitInBubble(5 * time.Second)
		stop()
		require.EqualValues(s, 1, s.bus.Stats().Active)
		s.setFailure("a", nil)
		s.startReceiver(func(o *objectevents.Options) { o.Registerer = nil })
		waitInBubble(2 * time.Minute)
		require.Equal(s, map[string]int64{"a": 0}, s.keys())
	})
}
