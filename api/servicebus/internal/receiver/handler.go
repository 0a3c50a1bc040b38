package receiver

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/domain"
)

// A Message was received and is not settled yet. T is what it says.
type Message[T any] struct {
	*azservicebus.ReceivedMessage
	Content   T
	Weight    int        // bytes in memory, about
	Rejection *Rejection // not nil if it cannot be stored

	// Trace is the span of the message while the loop holds it. Without a tracer it is what the
	// message carries; zero: nothing.
	Trace domain.TraceContext

	span trace.Span
	lost bool // no longer locked; guarded by messageLocks
}

// A Rejection is why a message cannot be used: never, or not before an operator has repaired
// what is stored. The dead letter carries it, so it quotes no payload.
type Rejection struct {
	Reason      string // a word
	Description string // what is wrong, and where, for the operator who repairs it
}

// A Caused content names spans that have caused it, besides the one that its message carries, such as
// those of CloudEvents. The span of the message has links to them.
type Caused interface {
	// TraceCauses returns up to domain.MaxCauses spans.
	TraceCauses() []domain.TraceContext
}

// A Handler gives the messages of one loop their meaning. Decode may be called while
// Store runs; apart from that the loop calls one method at a time.
type Handler[T any] interface {
	// Decode returns what a message says and about how many bytes of memory that takes,
	// or why the message can never be used.
	Decode(m *azservicebus.ReceivedMessage) (content T, weight int, rejected *Rejection)

	// Store stores messages, in their order. Before it returns, it has passed each of them to
	// Settle or Abandon of the loop, or parked it. ctx ends when the locks are lost or the
	// grace has passed; Store then returns soon.
	Store(ctx context.Context, batch []*Message[T])

	// DeadLettered is called when a message has become a dead letter. It may be called
	// while Store runs.
	DeadLettered(m *Message[T])
}

// A Parker keeps messages of a queue without sessions locked that cannot be stored for
// the moment, so that those behind them are served.
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

// Fairness lets sessions make way for others that wait.
type Fairness interface {
	// Wanted returns a channel that is closed while another session may be waiting.
	Wanted() <-chan struct{}

	// MakeWay reports whether a session that has had its turn is to end.
	MakeWay() bool
}
