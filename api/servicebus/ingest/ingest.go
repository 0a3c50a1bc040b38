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

// An ingester stores events. [hub.Hub] implements it.
type ingester interface {
	// Check returns the *hub.RejectionError with which Ingest would refuse events.
	Check(events []domain.Event) error

	Ingest(ctx context.Context, events []domain.Event) (hub.Ingested, error)
}

// Options are the options of an Ingestion. Hub and Open are required.
type Options struct {
	Hub ingester

	// Open returns a client for only this queue, with the ClientRetries of
	// package servicebus, because the failure of a receiver can end all links
	// of its client. It is called once for each queue, and again when a client
	// no longer works, so that new credentials are used.
	Open func() (*azservicebus.Client, error)

	SessionQueue string // queue with sessions, named after the recipients; "": none
	Queue        string // queue without sessions; "": none
	DomainQueues []DomainQueue

	Sessions int // concurrent sessions of a queue; default 64
	Message  MessageLimits
	Limits   Limits
	Grace    time.Duration // time to finish held messages when the context of Run ends; default 20 s

	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: none
	Traces     trace.TracerProvider  // for the spans of messages; default: none are recorded
	Clock      func() time.Time      // default: the system's
	Random     func() float64        // from 0 to 1, for jitter; default: the system's
}

// A DomainQueue is a queue with sessions, named after the recipients, to which
// only one domain may send. A message does not say who has sent it, but its
// queue does.
type DomainQueue struct {
	Queue  string
	Origin domain.Origin // origin of each event in it
}

// Limits are the limits of the messages that an Ingestion holds, and its
// timeouts. The zero value means good defaults.
type Limits struct {
	ReceiverMessages int // held messages of one session; default 256
	ReceiverBytes    int // held bytes of one session; default 4 MB. The message that exceeds it is still received.
	Messages         int // held messages in total; default 4096
	Bytes            int // held bytes in total; default 64 MB
	Saves            int // concurrent saves; default 8. With more, each save is smaller.

	Attempt time.Duration // limit of one attempt to save; default 30 s
	Settle  time.Duration // limit for completing one message; default 5 s
	Wait    time.Duration // how long a request for the next session waits before it is repeated; default 30 s

	Linger       time.Duration // how long a session without messages is kept; default 5 s
	Turn         time.Duration // time after which a session makes way for waiting ones; default 1 s
	TurnMessages int           // messages after which a session makes way for waiting ones; default 1000
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

// An Ingestion moves events from the queues of a bus to the hub. Any number of
// them may run at the same time, in one process or several.
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

// New returns an Ingestion. It makes no call; Run does.
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
	// A loop that waits for a message has acquired room for it. There must be
	// more room than loops, otherwise waiting loops would prevent the others
	// from receiving.
	limits.Messages = max(limits.Messages, 2*(o.Sessions*(1+len(o.DomainQueues))+2))
	return &Ingestion{
		opts: o, limits: limits,
		decoder: newDecoder(o.Message, o.Hub.Check),
		metrics: newIngestMetrics(o.Registerer, o.queueNames()),
		order:   newOrder(),
		inHand:  receiver.NewBudget(limits.Messages, limits.Bytes),
		saves:   semaphore.NewWeighted(int64(limits.Saves)),
		tracer:  tracing.New(o.Traces, "api/servicebus/ingest"),
	}
}

// ErrAtOnce stops Run immediately if it is the cause of the end of its context:
// messages that are not settled return to the bus.
var ErrAtOnce = busclient.ErrAtOnce

// queueNames returns the names of the queues.
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

// Run consumes the queues until ctx ends, finishes the held messages, and
// returns nil. It retries after every failure of the bus.
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

// retryDelay returns the pause before the next attempt, after a number of
// consecutive failures.
func (in *Ingestion) retryDelay(failures int) time.Duration {
	return busclient.Backoff(failures, in.opts.Random)
}
