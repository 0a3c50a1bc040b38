package contract

import (
	"strings"
	"time"
)

// The application properties of every message.
const (
	PropertyTimestamp      = "OperationTimestamp"     // string: when it was made, such as 2026-03-01T12:00:00Z
	PropertyCorrelation    = "OperationCorrelationId" // string: the operation that it is part of
	PropertyVersion        = "MessageVersion"         // int: Version
	PropertyMessageType    = "MessageType"            // string: what the body is
	PropertyIdentification = "EventIdentification"    // string: a random GUID
)

// The application properties that the hub adds to a message when an operator has sent it again
// from the dead letters.
const (
	PropertyResentBy        = "ResentBy"        // string: the operator
	PropertyResentAt        = "ResentAt"        // string: when, such as 2026-03-01T12:00:00Z
	PropertyFormerMessageID = "FormerMessageId" // string: the message id that its sender has set
)

// Version is the one version of the messages.
const Version = 1

// The message types.
const (
	DataAvailable      = "DataAvailable"
	RequestDataBundle  = "RequestDataBundle"
	DataBundleResponse = "DataBundleResponse"
	Dequeue            = "Dequeue"
)

// The content types of an announcement. A missing content type means Protobuf. All other
// messages are always Protobuf, and have no content type.
const (
	Protobuf        = "application/x-protobuf"
	JSON            = "application/json"
	CloudEvent      = "application/cloudevents+json"
	CloudEventBatch = "application/cloudevents-batch+json"
)

// The values of ResponseFormatRequested of DataBundleRequestContract.
const (
	FormatXML  = "Xml"
	FormatJSON = "Json"
)

// ReplyWithin is how long an actor waits for content in all: the longest that a
// request lives, and how long a reply does.
const ReplyWithin = 30 * time.Second

// The queues on which domains announce data.
const (
	DataAvailableFIFO  = "dataavailable-fifo" // sessions, one for each recipient
	DataAvailableQueue = "dataavailable"      // no sessions
)

// Queues are those of one domain.
type Queues struct {
	Request string // sessions: the hub asks for content
	Reply   string // sessions: the domain answers
	Dequeue string // no sessions: the hub says that a bundle arrived
}

// DefaultQueues are those of the domain with an origin, named after the origin on
// the wire: timeseries, timeseries-reply, timeseries-dequeue.
func DefaultQueues(origin string) Queues {
	name := strings.ToLower(WireOrigin(origin))
	return Queues{Request: name, Reply: name + "-reply", Dequeue: name + "-dequeue"}
}

// One origin has two names.
const (
	aggregations = "Aggregations"
	wholesale    = "Wholesale"
)

// WireOrigin returns the name of an origin on the wire.
func WireOrigin(origin string) string {
	if origin == aggregations {
		return wholesale
	}
	return origin
}

// ParseOrigin returns the origin that a text on the wire stands for. Like the original, it also
// reads the numbers of the original's origins. Any other text is the name of an origin; the hub
// decides whether that domain exists.
func ParseOrigin(text string) string {
	switch text {
	case "1":
		return "Charges"
	case "2":
		return "TimeSeries"
	case "3", wholesale:
		return aggregations
	case "4":
		return "MarketRoles"
	case "5":
		return "MeteringPoints"
	}
	return text
}

// ExchangeContainer is the blob container that the hub shares with the domains,
// unless it is configured otherwise.
const ExchangeContainer = "messagehub-exchange"

// ContentName is the name of the blob in which the original's domains leave the
// content of a bundle. The hub takes any name that a reply states, but that of a list
// of ids. When it has a copy it removes the blob if that is named after the
// IdempotencyId (ID, ID_anything or ID.anything, in any folder); what has another name
// is the domain's to remove.
func ContentName(idempotencyID string) string { return idempotencyID + "_data" }
