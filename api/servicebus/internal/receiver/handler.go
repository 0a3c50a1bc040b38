package receiver

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/domain"
)

// A Message is a received message that is not settled yet. T is the type of its decoded content.
type Message[T any] struct {
	*azservicebus.ReceivedMessage
	Content   T
	Weight    int        // approximate size of the message in memory, in bytes
	Rejection *Rejection // reason why the message is dead-lettered; nil for a valid message

	// Trace is the span of the message while the loop holds the message. If no spans are recorded,
	// Trace is the trace context in the message, or zero if the message has none.
	Trace domain.TraceContext

	span trace.Span
	lost bool // whether the lock has expired; guarded by the mutex of messageLocks
}

// A Rejection is the reason why a message is dead-lettered: the message is invalid, or stored data
// must be repaired first. It is written to the dead letter, so it must not contain the payload.
type Rejection struct {
	Reason      string // one word
	Description string // tells an operator what is wrong and where in the message
}

// Caused is message content that contains the trace contexts of its causes, such as those in
// CloudEvents. The span of the message has links to the spans of the causes. The message may have a
// trace context of its own as well.
type Caused interface {
	// TraceCauses returns up to domain.MaxCauses trace contexts.
	TraceCauses() []domain.TraceContext
}

// A Handler decodes and stores the messages of one loop. The loop may call Decode and DeadLettered
// while Store runs. It does not call Store concurrently.
type Handler[T any] interface {
	// Decode returns the content of a message and its approximate size in memory, or the reason why
	// the message can never be stored.
	Decode(m *azservicebus.ReceivedMessage) (content T, weight int, rejected *Rejection)

	// Store stores messages in order. Before it returns, it must pass each message to Settle or
	// Abandon of the loop, or park it. ctx ends when the locks are lost or the grace period has
	// passed; Store must then return soon.
	Store(ctx context.Context, batch []*Message[T])

	// DeadLettered is called when a message has become a dead letter. It may be called
	// while Store runs.
	DeadLettered(m *Message[T])
}

// A Parker holds messages that cannot be stored at present. They stay locked, so that later
// messages are stored. It is used only for a queue without sessions.
type Parker interface {
	// RetryAt returns the time of the next Retry. parked reports whether any messages are parked.
	RetryAt() (at time.Time, parked bool)

	// Retry stores the parked messages, unless it is too early for a retry.
	Retry(ctx context.Context)

	// IsFull reports whether the limit of parked messages is reached. If so, the loop waits.
	IsFull() bool

	// AbandonParked returns the parked messages to the bus when the loop ends.
	AbandonParked()
}

// Fairness determines when a session yields to waiting sessions.
type Fairness interface {
	// Wanted returns a channel that is closed while another session may be waiting.
	Wanted() <-chan struct{}

	// MakeWay reports whether a session that has used up its time or messages must end.
	MakeWay() bool
}
