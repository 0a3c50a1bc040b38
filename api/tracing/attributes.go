package tracing

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/messagehub/messagehub/domain"
)

// The attributes of spans, named by the semantic conventions of OpenTelemetry for HTTP and
// messaging. No attribute contains a payload, a token or the id of an event.
const (
	HTTPMethod = attribute.Key("http.request.method")
	HTTPRoute  = attribute.Key("http.route")
	HTTPStatus = attribute.Key("http.response.status_code")
	Resend     = attribute.Key("http.request.resend_count")
	ErrorType  = attribute.Key("error.type")

	System        = attribute.Key("messaging.system")         // the constant ServiceBus or Hub
	OperationName = attribute.Key("messaging.operation.name") // name of the operation, such as peek
	OperationType = attribute.Key("messaging.operation.type") // one of Send, Receive, Process and Settle
	Destination   = attribute.Key("messaging.destination.name")
	MessageID     = attribute.Key("messaging.message.id") // id of a bundle, or of a message on the bus
	BatchSize     = attribute.Key("messaging.batch.message_count")

	Actor  = attribute.Key("messagehub.actor")
	Origin = attribute.Key("messagehub.origin")
	Group  = attribute.Key("messagehub.group")
)

// Values of System.
const (
	Hub        = "messagehub"
	ServiceBus = "servicebus"
)

// The values of OperationType.
const (
	Send    = "send"
	Receive = "receive"
	Process = "process"
	Settle  = "settle"
)

// BusAttributes returns the attributes of a call to Service Bus. It shortens a long message id,
// because senders choose the ids.
func BusAttributes(name, kind, queue, message string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{System.String(ServiceBus), OperationName.String(name), OperationType.String(kind), Destination.String(queue)}
	if message != "" {
		attrs = append(attrs, MessageID.String(domain.Shorten(message)))
	}
	return attrs
}
