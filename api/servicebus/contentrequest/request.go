package contentrequest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// Options are the options of Requests.
type Options struct {
	// Open creates a client of the bus without connecting. It is called again after a connection
	// was lost or refused, so that a changed key takes effect. The client should use ClientRetries
	// of package servicebus, because this package retries requests itself.
	Open func() (*azservicebus.Client, error)

	// Queues are the queues of the domains that can receive requests.
	Queues map[domain.Origin]contract.Queues

	// MaxRequests is the maximum number of concurrent requests to one domain. It prevents a slow
	// domain from using all the capacity. Default: 256.
	MaxRequests int

	// Connections is the number of connections for replies. On each connection, Microsoft's client
	// opens one session at a time, which takes about twenty round trips to the bus. Default: 4.
	Connections int

	Traces     trace.TracerProvider  // records the spans of requests; default: no spans are recorded
	Clock      func() time.Time      // default time.Now
	NewID      func() uuid.UUID      // default uuid.New
	Random     func() float64        // source of jitter, in [0, 1); default rand.Float64
	Logger     *slog.Logger          // default: discards
	Registerer prometheus.Registerer // registers the request metrics; default: no metrics
}

func (o *Options) setDefaults() {
	o.MaxRequests = cmp.Or(o.MaxRequests, 256)
	o.Connections = cmp.Or(o.Connections, 4)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.New
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
}

// Requests sends requests for content to domains over Service Bus, and receives the replies:
//
//	Request ──▶ queue of the domain        expires when the actor stops waiting
//	        ◀── session of its reply queue, which is named after this one request
//
// The hub accepts the session while the request is sent. Requests and replies use separate
// connections, because the failure of a receiver ends its whole connection.
//
// A message in the session is the reply if it contains the id of the request and does not contain
// the id of a different bundle. A malformed reply counts as a failure of the domain. Malformed
// replies and unrelated messages are dead-lettered with a reason. The reply and its duplicates are
// completed after the caller has received the reply. A late reply has no effect, because each
// request has a separate session; it remains in its session until it expires. Domains may send
// replies without a time to live, so the reply queues need a default time to live.
//
// If a connection is lost during the wait for a reply, the connection is replaced and the session
// is reopened. The death of a node loses no state: the next Peek repeats the request for the same
// bundle with the same idempotency id.
type Requests struct {
	opts     Options
	requests *busclient.Connection
	replies  []*busclient.Connection
	slots    map[domain.Origin]chan struct{} // each slot is one request in flight
	tasks    *busclient.TaskGroup
	metrics  *requestMetrics
	tracer   *tracing.Tracer
}

var _ hub.Requester = (*Requests)(nil)

// New returns Requests that connect when they are first used. Close closes the connections.
func New(opts Options) *Requests {
	opts.setDefaults()
	connection := busclient.Options{Open: opts.Open, Logger: opts.Logger}
	replies := make([]*busclient.Connection, opts.Connections)
	for i := range replies {
		replies[i] = busclient.NewConnection(connection)
	}
	slots := make(map[domain.Origin]chan struct{})
	for origin := range opts.Queues {
		slots[origin] = make(chan struct{}, opts.MaxRequests)
	}
	return &Requests{
		opts:     opts,
		requests: busclient.NewConnection(connection),
		replies:  replies,
		slots:    slots,
		tasks:    busclient.NewTaskGroup(),
		metrics:  newRequestMetrics(opts.Registerer, slices.Collect(maps.Keys(opts.Queues))),
		tracer:   tracing.New(opts.Traces, "api/servicebus/contentrequest"),
	}
}

// Close makes waiting callers fail with Unavailable, and closes the connections. If ctx ends first,
// Close returns while the remaining work continues for a short time.
func (r *Requests) Close(ctx context.Context) error {
	r.tasks.Stop()
	err := r.tasks.Close(ctx)
	for _, c := range append(r.replies, r.requests) {
		_ = busclient.Outlast(ctx, busclient.CloseTimeout, c.Close) // Connection.Close always returns nil
	}
	return err
}

var errClosing = domain.Errorf(domain.Unavailable, "ask a domain: this hub is being stopped")

// Request implements hub.Requester. If the returned error wraps the error of ctx, the bus works but
// the domain has not replied.
func (r *Requests) Request(ctx context.Context, q hub.ContentRequest) (hub.Reply, error) {
	queues, ok := r.opts.Queues[q.Origin]
	if !ok {
		return hub.Reply{}, domain.Errorf(domain.Unavailable, "ask domain %s: it has no queues; name them in the configuration", q.Origin)
	}
	began := r.opts.Clock()
	ctx, span := r.startSpan(ctx, &q, queues.Request)
	reply, err := r.sendRequest(ctx, q, queues)
	endSpan(span, reply, err)
	r.metrics.countRequest(q.Origin, outcomeOf(reply, err), r.opts.Clock().Sub(began))
	return reply, err
}

func (r *Requests) sendRequest(ctx context.Context, q hub.ContentRequest, queues contract.Queues) (hub.Reply, error) {
	left, err := r.timeLeft(ctx, &q)
	if err != nil {
		return hub.Reply{}, err
	}
	a, err := r.newAttempt(ctx, q, queues, left)
	if err != nil {
		return hub.Reply{}, err
	}
	slots := r.slots[q.Origin]
	select {
	case slots <- struct{}{}:
	default:
		return hub.Reply{}, domain.Errorf(domain.Busy, "ask domain %s: %d requests are under way already; see why it is slow", q.Origin, r.opts.MaxRequests)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	release := func() { <-slots }
	if !r.tasks.Go(func() { defer release(); a.run(ctx) }) {
		release()
		return hub.Reply{}, errClosing
	}
	return a.awaitReply(ctx)
}

// timeLeft returns the remaining time for the domain, rounded down to whole milliseconds.
func (r *Requests) timeLeft(ctx context.Context, q *hub.ContentRequest) (time.Duration, error) {
	if q.By.IsZero() {
		return 0, domain.Errorf(domain.Invalid, "ask domain %s: the request has no deadline; set By", q.Origin)
	}
	left := time.Until(q.By).Truncate(time.Millisecond) // always the system clock; opts.Clock, which stamps messages, may differ
	if err := ctx.Err(); err != nil || left <= 0 {
		return 0, fmt.Errorf("ask domain %s: no time is left: %w", q.Origin, cmp.Or(err, context.DeadlineExceeded))
	}
	const longest = math.MaxUint32 * time.Millisecond
	return min(left, longest), nil
}

// newAttempt creates an attempt that sends q to queues.Request.
func (r *Requests) newAttempt(ctx context.Context, q hub.ContentRequest, queues contract.Queues, left time.Duration) (*attempt, error) {
	id, process := r.opts.NewID().String(), hub.ProcessID(q.Bundle, q.Recipient)
	format := contract.FormatJSON
	if q.Format == domain.XML {
		format = contract.FormatXML
	}
	body, err := contract.Marshal(&contract.DataBundleRequestContract{
		RequestId:                            id,
		DataAvailableNotificationReferenceId: q.List,
		IdempotencyId:                        process,
		MessageType:                          q.ContentType.String(),
		ResponseFormatRequested:              format,
		ResponseFromatVersion:                versionOf(q.Version),
	})
	if err != nil {
		return nil, domain.Errorf(domain.Damaged, "write a message to a domain: %w", err)
	}
	properties := contract.Properties(contract.RequestDataBundle, process, r.opts.Clock(), r.opts.NewID())
	tracing.AddToProperties(properties, domain.TraceContextOf(ctx))
	return &attempt{
		requests: r, origin: q.Origin, id: id, process: process, queues: queues,
		message: &azservicebus.Message{
			Body: body, MessageID: &id, SessionID: &id, CorrelationID: &process,
			ReplyTo: &queues.Reply, ReplyToSessionID: &id, TimeToLive: &left,
			ApplicationProperties: properties,
		},
		sent: make(chan error, 1), result: make(chan replyResult, 1),
	}, nil
}

// versionOf parses the version of a format as the original does: it returns 1 if text is not a
// number.
func versionOf(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 1
	}
	return v
}
