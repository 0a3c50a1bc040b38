package objectevents

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain/ledger"
)

// A Ledger stores events. *[ledger.Service] implements it.
type Ledger interface {
	// Ingest stores events and returns the outcome of each event.
	Ingest(ctx context.Context, reports []ledger.Report) ledger.IngestResult
}

// Options are the options of a Receiver. Ledger, Open and Queue are required.
type Options struct {
	Ledger Ledger

	// Open returns a client for this Receiver only. It is called again after a client has failed,
	// so that new credentials take effect.
	Open func() (*azservicebus.Client, error)

	Queue string // name of a queue without sessions

	Body   int           // maximum size of one message in bytes; default 32 MB
	Events int           // maximum number of events in one message; default 10,000
	Grace  time.Duration // maximum time to finish held messages after the context of Run has ended; default 20 s

	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: none
	Traces     trace.TracerProvider  // records the spans of messages; default: no spans are recorded
	Clock      func() time.Time      // default: time.Now
	Random     func() float64        // source of jitter, in [0, 1); default rand.Float64
}

// ErrAtOnce stops Run immediately if it is the cause with which the caller cancels Run's context. Run
// then skips the grace period, and messages that are not settled return to the bus.
var ErrAtOnce = busclient.ErrAtOnce

// Limits of the held messages, and of one attempt to store them.
const (
	maxMessages   = 256
	maxBytes      = 8 << 20
	attempt       = 30 * time.Second
	settleTimeout = 5 * time.Second
)

// A Receiver receives events from a queue. Any number of Receivers may run at the same time, in
// one process or several.
type Receiver struct {
	opts    Options
	metrics *receiverMetrics
	inHand  *receiver.Budget
	stores  *semaphore.Weighted
	tracer  *tracing.Tracer
}

// New returns a Receiver, which connects to the bus when Run is called.
func New(o Options) *Receiver {
	o.Body = cmp.Or(o.Body, 32<<20)
	o.Events = cmp.Or(o.Events, 10_000)
	o.Grace = cmp.Or(o.Grace, 20*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler)).With("queue", o.Queue)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return &Receiver{
		opts: o, metrics: newMetrics(o.Registerer, o.Queue),
		inHand: receiver.NewBudget(maxMessages, maxBytes), stores: semaphore.NewWeighted(1),
		tracer: tracing.New(o.Traces, "api/servicebus/objectevents"),
	}
}

// Run receives messages until ctx ends, and then stores the held messages within the grace period.
// It returns no error, because it retries after each failure of the bus. If ctx ends with the cause
// [ErrAtOnce], the held messages return to the bus.
func (r *Receiver) Run(ctx context.Context) {
	work, stop := busclient.WithGrace(ctx, r.opts.Grace)
	defer stop()
	bus := receiver.NewConnection(r.opts.Queue, r.opts.Open, r.metrics.loops, r.opts.Logger)
	receiver.ServeQueue(ctx, work, bus, r.retryDelay, func(from *azservicebus.Receiver) *receiver.Loop[messageContent] {
		s := &eventStore{receiver: r}
		s.loop = receiver.NewQueue(receiver.Options[messageContent]{
			Queue: r.opts.Queue, Handler: s, Parker: s,
			Limits: receiver.Limits{Messages: maxMessages, Bytes: maxBytes, Settle: settleTimeout},
			InHand: r.inHand, Stores: r.stores, Metrics: r.metrics.loops, Logger: r.opts.Logger, Clock: r.opts.Clock,
			Tracer: r.tracer,
		}, from)
		return s.loop
	})
}

func (r *Receiver) retryDelay(failures int) time.Duration {
	return busclient.Backoff(failures, r.opts.Random)
}
