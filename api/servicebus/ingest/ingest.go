package ingest

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// An ingester stores events. *[hub.Hub] implements it.
type ingester interface {
	// Check returns the *hub.RejectionError that Ingest would return for the events, or nil.
	Check(events []domain.Event) error

	Ingest(ctx context.Context, events []domain.Event) (hub.IngestResult, error)
}

// Options are the options of an Ingestion. Hub and Open are required.
type Options struct {
	Hub ingester

	// Open returns a client for one queue. Each queue needs its own client, because the failure of
	// a receiver can end all links of a client. The client should use ClientRetries of package
	// servicebus. Open is called once for each queue, and again when a client no longer works, so
	// that new credentials take effect.
	Open func() (*azservicebus.Client, error)

	SessionQueue string // name of the queue with a session for each recipient; "" if none exists
	Queue        string // name of the queue without sessions; "" if none exists
	DomainQueues []DomainQueue

	Sessions int // maximum number of concurrent sessions of a queue; default 64
	Message  MessageLimits
	Limits   Limits
	Grace    time.Duration // maximum time to finish the held messages after the context of Run has ended; default 20 s

	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: none
	Traces     trace.TracerProvider  // records the spans of messages; default: no spans are recorded
	Clock      func() time.Time      // default: time.Now
	Random     func() float64        // source of jitter, in [0, 1); default rand.Float64
}

// A DomainQueue is a queue with a session for each recipient, to which only one domain may send.
// The queue thus identifies the sender, which a message alone cannot do.
type DomainQueue struct {
	Queue  string
	Origin domain.Origin // required origin of all events in the queue
}

// Limits are timeouts and limits of the messages that an Ingestion holds. A zero field selects its
// default.
type Limits struct {
	ReceiverMessages int // maximum number of held messages of one session; default 256
	ReceiverBytes    int // maximum number of held bytes of one session; default 4 MB. The last message may exceed this limit.
	Messages         int // maximum number of held messages in total; default 4096
	Bytes            int // maximum number of held bytes in total; default 64 MB
	Saves            int // maximum number of concurrent saves; default 8. A higher limit makes each save smaller.

	Attempt time.Duration // time limit of one attempt to save; default 30 s
	Settle  time.Duration // time limit for completing one message; default 5 s
	Wait    time.Duration // time limit of one request for the next session; default 30 s

	Linger       time.Duration // time for which an idle session stays open; default 5 s
	Turn         time.Duration // time after which a session yields its slot to waiting sessions; default 1 s
	TurnMessages int           // number of messages after which a session yields its slot to waiting sessions; default 1000
}

func (l Limits) withDefaults() Limits {
	l.ReceiverMessages = cmp.Or(l.ReceiverMessages, 256)
	l.ReceiverBytes = cmp.Or(l.ReceiverBytes, 4<<20)
	l.Messages = cmp.Or(l.Messages, 4096)
	l.Bytes = cmp.Or(l.Bytes, 64<<20)
	l.Saves = cmp.Or(l.Saves, 8)
	l.Attempt = cmp.Or(l.Attempt, 30*time.Second)
	l.Settle = cmp.Or(l.Settle, 5*time.Second)
	l.Wait = cmp.Or(l.Wait, 30*time.Second)
	l.Linger = cmp.Or(l.Linger, 5*time.Second)
	l.Turn = cmp.Or(l.Turn, time.Second)
	l.TurnMessages = cmp.Or(l.TurnMessages, 1000)
	return l
}

// An Ingestion moves events from the queues of a bus to the hub. Any number of Ingestions may run
// at the same time, in one process or several.
type Ingestion struct {
	opts    Options
	limits  Limits
	decoder *decoder
	metrics *ingestMetrics
	order   *orderMonitor
	inHand  *receiver.Budget
	saves   *semaphore.Weighted
	tracer  *tracing.Tracer
}

// New returns an Ingestion, which connects to the bus when Run is called.
func New(o Options) *Ingestion {
	o.Sessions = cmp.Or(o.Sessions, 64)
	o.Grace = cmp.Or(o.Grace, 20*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	limits := o.Limits.withDefaults()
	// Each waiting loop has already acquired capacity for one message. The limit must exceed the
	// number of loops: otherwise, waiting loops could use all the capacity.
	limits.Messages = max(limits.Messages, 2*(o.Sessions*(1+len(o.DomainQueues))+2))
	return &Ingestion{
		opts: o, limits: limits,
		decoder: newDecoder(o.Message, o.Hub.Check),
		metrics: newIngestMetrics(o.Registerer, o.queueNames()),
		order:   newOrderMonitor(),
		inHand:  receiver.NewBudget(limits.Messages, limits.Bytes),
		saves:   semaphore.NewWeighted(int64(limits.Saves)),
		tracer:  tracing.New(o.Traces, "api/servicebus/ingest"),
	}
}

// ErrAtOnce stops Run immediately if it is the cause with which the caller cancels Run's context. Run
// then skips the grace period, and messages that are not settled return to the bus.
var ErrAtOnce = busclient.ErrAtOnce

// queueNames returns the names of all queues of an Ingestion.
func (o *Options) queueNames() (names []string) {
	for _, q := range o.DomainQueues {
		names = append(names, q.Queue)
	}
	for _, name := range []string{o.SessionQueue, o.Queue} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Run consumes the queues until ctx ends, finishes the held messages, and returns nil. It retries
// after every failure of the bus.
func (in *Ingestion) Run(ctx context.Context) error {
	work, stop := busclient.WithGrace(ctx, in.opts.Grace)
	defer stop()
	var queues sync.WaitGroup
	if in.opts.SessionQueue != "" {
		queues.Go(func() { in.serveSessions(ctx, work, in.opts.SessionQueue, domain.Origin{}) })
	}
	for _, q := range in.opts.DomainQueues {
		queues.Go(func() { in.serveSessions(ctx, work, q.Queue, q.Origin) })
	}
	if in.opts.Queue != "" {
		queues.Go(func() { in.serveQueue(ctx, work, in.opts.Queue) })
	}
	<-ctx.Done()
	queues.Wait()
	return nil
}

// retryDelay returns the pause before the next attempt, after the given number of consecutive
// failures.
func (in *Ingestion) retryDelay(failures int) time.Duration {
	return busclient.Backoff(failures, in.opts.Random)
}
