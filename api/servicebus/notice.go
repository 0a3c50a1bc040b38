package servicebus

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/internal/hubmetrics"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// NoticeOptions are the options of Notices.
type NoticeOptions struct {
	Open       func() (*azservicebus.Client, error) // see [ClientRetries]
	Queues     map[domain.Origin]contract.Queues    // queues of the domains to which notices are sent
	Clock      func() time.Time                     // default time.Now
	NewID      func() uuid.UUID                     // default uuid.New
	Traces     trace.TracerProvider                 // records the spans of notices; default: no spans are recorded
	Logger     *slog.Logger                         // default: discards
	Registerer prometheus.Registerer                // registers the metrics of notices; default: no metrics
}

// Notices sends notices to domains over Service Bus when an actor has confirmed a bundle. The
// message id of a notice depends only on its bundle, so that the bus or the domain detects a
// duplicate. The notices of consecutive calls reach the queue in order.
type Notices struct {
	opts  NoticeOptions
	bus   *busclient.Connection
	tasks *busclient.TaskGroup
	count *prometheus.CounterVec // origin, outcome

	tracer *tracing.Tracer
}

var _ hub.Notifier = (*Notices)(nil)

// NewNotices returns Notices that connect when they are first used. Close closes the connection.
func NewNotices(opts NoticeOptions) *Notices {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.NewID == nil {
		opts.NewID = uuid.New
	}
	n := &Notices{
		opts:  opts,
		bus:   busclient.NewConnection(busclient.Options{Open: opts.Open, Logger: opts.Logger}),
		tasks: busclient.NewTaskGroup(), tracer: tracing.New(opts.Traces, "api/servicebus"),
		count: promauto.With(opts.Registerer).NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_servicebus_notices_total",
			Help: "Notices to domains that an actor holds a bundle, by origin and outcome: accepted, unavailable (the bus), uncertain (it may have been accepted).",
		}, []string{"origin", "outcome"}),
	}
	for origin := range opts.Queues {
		hubmetrics.Initialize(n.count, []string{origin.String()}, []string{"accepted", domain.Unavailable.String(), domain.Uncertain.String()})
	}
	return n
}

// Close waits until the calls in flight have ended, and closes the connection. If ctx ends first,
// Close returns while the remaining work continues for a short time.
func (n *Notices) Close(ctx context.Context) error {
	err := n.tasks.Close(ctx)
	_ = busclient.Outlast(ctx, busclient.CloseTimeout, n.bus.Close) // Connection.Close always returns nil
	return err
}

// Notify implements hub.Notifier. It fails with Unavailable if the bus has not accepted the notice,
// and with Uncertain if the bus may have accepted it.
func (n *Notices) Notify(ctx context.Context, notice domain.Notice) error {
	queues, ok := n.opts.Queues[notice.Origin]
	if !ok {
		return domain.Errorf(domain.Unavailable, "notify domain %s: it has no queues; name them in the configuration", notice.Origin)
	}
	ctx, span := n.startSpan(ctx, &notice, queues.Dequeue)
	err := n.sendNotice(ctx, notice, queues.Dequeue)
	endSpan(span, err)
	outcome := "accepted"
	if err != nil {
		outcome = domain.KindOf(err).String()
		err = domain.Errorf(domain.KindOf(err), "notify domain %s that %s holds bundle %s: %w", notice.Origin, notice.Recipient, notice.Bundle, err)
	}
	n.count.WithLabelValues(notice.Origin.String(), outcome).Inc()
	return err
}

// startSpan starts the span of a notice. Its parent is the span of the Peek that opened the bundle.
// The message to the domain contains the trace context of the new span.
func (n *Notices) startSpan(ctx context.Context, notice *domain.Notice, queue string) (context.Context, trace.Span) {
	start := tracing.Start{Name: "send " + queue, Kind: trace.SpanKindProducer, Parent: notice.Peeked}
	if n.tracer.IsOn() {
		start.Attrs = append(tracing.BusAttributes("notify", tracing.Send, queue, notice.Bundle.String()), tracing.Origin.String(notice.Origin.String()))
	}
	return n.tracer.Start(ctx, start)
}

func endSpan(span trace.Span, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		span.SetAttributes(tracing.ErrorType.String(domain.KindOf(err).String()))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

func (n *Notices) sendNotice(ctx context.Context, notice domain.Notice, queue string) error {
	process := hub.ProcessID(notice.Bundle, notice.Recipient)
	body, err := contract.Marshal(&contract.DequeueContract{
		DataAvailableNotificationReferenceId: notice.List,
		MarketOperator:                       notice.Recipient.String(),
	})
	if err != nil {
		return domain.Errorf(domain.Damaged, "write a message to a domain: %w", err)
	}
	properties := contract.Properties(contract.Dequeue, process, n.opts.Clock(), n.opts.NewID())
	tracing.AddToProperties(properties, domain.TraceContextOf(ctx))
	message := &azservicebus.Message{Body: body, MessageID: &process, CorrelationID: &process, ApplicationProperties: properties}
	if err := ctx.Err(); err != nil {
		return domain.Errorf(domain.Unavailable, "no time is left for the call: %w", err)
	}
	sent := make(chan error, 1)
	if !n.tasks.Go(func() { sent <- n.send(queue, message) }) { //nolint:contextcheck // a send outlasts its caller
		return domain.Errorf(domain.Unavailable, "this hub is being stopped")
	}
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return domain.Errorf(domain.Uncertain, "the bus has not confirmed in time whether it accepts the notice: %w", ctx.Err())
	}
}

// send sends a message. It continues when the context of the caller ends.
func (n *Notices) send(queue string, m *azservicebus.Message) error {
	err := n.bus.Send(n.tasks.Context(), queue, m)
	failed, _ := errors.AsType[*busclient.SendError](err)
	switch {
	case err == nil:
		return nil
	case failed.Uncertain:
		return domain.Errorf(domain.Uncertain, "%w", err)
	default:
		return domain.Errorf(domain.Unavailable, "%w", err)
	}
}
