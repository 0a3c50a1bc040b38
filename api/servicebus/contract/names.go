package contract

import (
	"strings"
	"time"
)

// The application properties of every message.
const (
	PropertyTimestamp      = "OperationTimestamp"     // string: the time at which the message was created, such as 2026-03-01T12:00:00Z
	PropertyCorrelation    = "OperationCorrelationId" // string: the id of the operation to which the message belongs
	PropertyVersion        = "MessageVersion"         // int: Version
	PropertyMessageType    = "MessageType"            // string: the type of the body
	PropertyIdentification = "EventIdentification"    // string: a random GUID
)

// The application properties that the hub adds to a dead letter when an operator sends it again.
const (
	PropertyResentBy        = "ResentBy"        // string: the id of the operator
	PropertyResentAt        = "ResentAt"        // string: the time, such as 2026-03-01T12:00:00Z
	PropertyFormerMessageID = "FormerMessageId" // string: the message id that the original sender set
)

// Version is the version of all messages; no other version exists.
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

// ReplyWithin is the total time that an actor waits for content. It limits the time to live of
// requests and replies.
const ReplyWithin = 30 * time.Second

// Queues to which domains send events.
const (
	DataAvailableFIFO  = "dataavailable-fifo" // queue with one session for each recipient
	DataAvailableQueue = "dataavailable"      // without sessions
)

// Queues are the queues of one domain.
type Queues struct {
	Request string // queue with sessions for the hub's requests for content
	Reply   string // queue with sessions for the domain's replies
	Dequeue string // queue without sessions for the notices that the hub sends after an actor has confirmed a bundle
}

// DefaultQueues returns the default queues of a domain. Their names start with the domain's origin
// as it appears in messages: timeseries, timeseries-reply, timeseries-dequeue.
func DefaultQueues(origin string) Queues {
	name := strings.ToLower(WireOrigin(origin))
	return Queues{Request: name, Reply: name + "-reply", Dequeue: name + "-dequeue"}
}

// Two names of one origin: the hub uses aggregations, and messages contain wholesale.
const (
	aggregations = "Aggregations"
	wholesale    = "Wholesale"
)

// WireOrigin returns the name of an origin in messages.
func WireOrigin(origin string) string {
	if origin == aggregations {
		return wholesale
	}
	return origin
}

// ParseOrigin returns the origin whose name in messages is text. Like the original, it also accepts
// the numbers of the original's origins. Any other text is returned unchanged; the hub checks
// whether a domain with this name exists.
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

// ContentName returns the name of the blob to which the original's domains write the content of a
// bundle. A reply may use any blob name except that of the list of ids. After copying the content,
// the hub deletes the blob if the name contains the IdempotencyId (ID, ID_anything or ID.anything,
// in any folder). The domain must delete blobs with any other name.
func ContentName(idempotencyID string) string { return idempotencyID + "_data" }
