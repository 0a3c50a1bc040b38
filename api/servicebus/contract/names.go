package contract

import (
	"strings"
	"time"
)

// The application properties of every message.
const (
	PropertyTimestamp      = "OperationTimestamp"     // string: when the message was made, such as 2026-03-01T12:00:00Z
	PropertyCorrelation    = "OperationCorrelationId" // string: the operation to which it belongs
	PropertyVersion        = "MessageVersion"         // int: Version
	PropertyMessageType    = "MessageType"            // string: the type of the body
	PropertyIdentification = "EventIdentification"    // string: a random GUID
)

// The application properties that the hub adds to a message when an operator has sent it again
// from the dead letters.
const (
	PropertyResentBy        = "ResentBy"        // string: the operator
	PropertyResentAt        = "ResentAt"        // string: when, such as 2026-03-01T12:00:00Z
	PropertyFormerMessageID = "FormerMessageId" // string: the message id that its sender has set
)

// Version is the only version of the messages.
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

// ReplyWithin is the total time that an actor waits for content. It limits the
// life of a request and of a reply.
const ReplyWithin = 30 * time.Second

// The queues on which domains announce data.
const (
	DataAvailableFIFO  = "dataavailable-fifo" // with sessions, one for each recipient
	DataAvailableQueue = "dataavailable"      // without sessions
)

// Queues are the queues of one domain.
type Queues struct {
	Request string // with sessions: the hub requests content
	Reply   string // with sessions: the domain answers
	Dequeue string // without sessions: the hub notifies that an actor has confirmed a bundle
}

// DefaultQueues returns the queues of the domain with an origin, which are
// named after the origin on the wire: timeseries, timeseries-reply,
// timeseries-dequeue.
func DefaultQueues(origin string) Queues {
	name := strings.ToLower(WireOrigin(origin))
	return Queues{Request: name, Reply: name + "-reply", Dequeue: name + "-dequeue"}
}

// The two names of one origin.
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

// ParseOrigin returns the origin for a text on the wire. Like the original, it
// also accepts the numbers of the original's origins. Any other text is the
// name of an origin; the hub decides whether that domain exists.
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

// ExchangeContainer is the default name of the blob container that the hub
// shares with the domains.
const ExchangeContainer = "messagehub-exchange"

// ContentName returns the name of the blob to which the original's domains
// write the content of a bundle. The hub accepts any name in a reply, except
// that of a list of ids. Once it has a copy, it deletes the blob if its name
// contains the IdempotencyId (ID, ID_anything or ID.anything, in any folder).
// The domain has to delete blobs with other names.
func ContentName(idempotencyID string) string { return idempotencyID + "_data" }
