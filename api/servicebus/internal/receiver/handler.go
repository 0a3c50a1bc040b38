package receiver

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/domain"
)

// A Message is a message that was received and is not settled yet. T is its
// content.
type Message[T any] struct {
	*azservicebus.ReceivedMessage
	Content   T
	Weight    int        // approximate bytes in memory
	Rejection *Rejection // not nil if it cannot be stored

	// Trace is the span of the message while the loop holds it. Without a
	// tracer it is the trace context in the message; zero: none.
	Trace domain.TraceContext

	span trace.Span
	lost bool // no longer locked; guarded by messageLocks
}

// A Rejection is the reason why a message cannot be used: never, or not before
// an operator has repaired what is stored. It goes into the dead letter, so it
// contains no payload.
type Rejection struct {
	Reason      string // one word
	Description string // what is wrong, and where, for the operator who repairs it
}

// Caused is a content that names spans that have caused it, such as those of
// CloudEvents, in addition to the one in its message. The span of the message
// has links to them.
type Caused interface {
	// TraceCauses returns up to domain.MaxCauses spans.
	TraceCauses() []domain.TraceContext
}

// A Handler decodes and stores the messages of one loop. Decode may be called
// while Store runs; otherwise the loop calls one method at a time.
type Handler[T any] interface {
	// Decode returns the content of a message and its approximate size in
	// memory, or why the message can never be used.
	Decode(m *azservicebus.ReceivedMessage) (content T, weight int, rejected *Rejection)

	// Store stores messages in their order. Before it returns, it has passed
	// each of them to Settle or Abandon of the loop, or parked it. ctx ends
	// when the locks are lost or the grace has passed; Store then returns soon.
	Store(ctx context.Context, batch []*Message[T])

	// DeadLettered is called when a message has become a dead letter. It may be called
	// while Store runs.
	DeadLettered(m *Message[T])
}

// A Parker keeps messages locked that cannot be stored for now, in a queue
// without sessions, so that later messages are served.
type Parker interface {
	// RetryAt returns when Retry is due, if there are parked messages.
	RetryAt() (at time.Time, parked bool)

	// Retry stores the parked messages again if that is due.
	Retry(ctx context.Context)

	// IsFull reports whether no more messages can be parked. The loop waits then.
	IsFull() bool

	// AbandonParked abandons the parked messages on the bus, as the loop ends.
	AbandonParked()
}

// Fairness makes sessions give way to others that wait.
type Fairness interface {
	// Wanted returns a channel that is closed while another session may be waiting.
	Wanted() <-chan struct{}

	// MakeWay reports whether a session that has had its turn must end.
	MakeWay() bool
}
