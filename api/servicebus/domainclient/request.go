package domainclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
)

// A Handler makes the content of a bundle. The context ends when the hub no
// longer waits for it. Its result is read to the end, and closed if it is an
// io.Closer; reading must fail or end once the context has ended.
//
// A *Failure is sent unchanged. Any other error, and a panic, becomes a Failure
// with the reason InternalError.
type Handler func(ctx context.Context, r *Request) (io.Reader, error)

// A Format is the format in which the actor wants the content.
type Format string

// The formats.
const (
	FormatJSON Format = "json"
	FormatXML  Format = "xml"
)

// mediaTypes are the media types of content in the exchange by its format.
var mediaTypes = map[Format]string{FormatJSON: "application/json", FormatXML: "application/xml"}

// A Request asks for the content of one bundle.
type Request struct {
	ID            string  // id of this attempt
	IdempotencyID string  // id of the bundle, the same for each attempt
	ContentType   string  // content type of the events
	Format        Format  // format of the content
	Version       float64 // version of the format, 1.0 unless the actor has asked for another
	List          string  // URI of the blob with the ids of the events

	// TraceParent and TraceState are the W3C Trace Context of the hub's request, "" if it has none.
	TraceParent, TraceState string

	exchange contentContainer
}

// EventIDs returns the ids of the events whose data is requested, in their
// order.
func (r *Request) EventIDs(ctx context.Context) ([]uuid.UUID, error) {
	return r.exchange.readIDs(ctx, r.List)
}

// A Failure is the reply of a domain without content, with its reason.
type Failure struct { //nolint:errname // the protocol calls it so
	Reason      Reason
	Description string // for the operators of the hub
}

func (f *Failure) Error() string { return f.Reason.String() + ": " + f.Description }

// A Reason is the reason why there is no content.
type Reason int32

// The reasons.
const (
	DatasetNotFound     = Reason(contract.DataBundleResponseContract_RequestFailure_DatasetNotFound)     // the domain does not know the events
	DatasetNotAvailable = Reason(contract.DataBundleResponseContract_RequestFailure_DatasetNotAvailable) // the data is not available now
	InternalError       = Reason(contract.DataBundleResponseContract_RequestFailure_InternalError)       // a fault of the domain
)

func (r Reason) String() string {
	return contract.DataBundleResponseContract_RequestFailure_Reason(r).String()
}

// An Answer is an answer that Serve has sent to the hub.
type Answer struct {
	Request *Request
	URI     string   // URI of the content; "" after a failure
	Bytes   int64    // size of the content
	Failure *Failure // nil if there is content
	Took    time.Duration
}

// largestRequest is far above the size of any request.
const largestRequest = 64 << 10

// parseRequest parses a request.
func (c *Client) parseRequest(m *azservicebus.ReceivedMessage) (*Request, error) {
	if len(m.Body) > largestRequest {
		return nil, fmt.Errorf("%d bytes are not a request", len(m.Body))
	}
	var r contract.DataBundleRequestContract
	if err := proto.Unmarshal(m.Body, &r); err != nil {
		return nil, fmt.Errorf("no DataBundleRequestContract: %w", err)
	}
	formats := map[string]Format{contract.FormatJSON: FormatJSON, contract.FormatXML: FormatXML}
	format, known := formats[cmp.Or(r.GetResponseFormatRequested(), contract.FormatXML)]
	switch {
	case r.GetRequestId() == "":
		return nil, errors.New("RequestId is missing, so there is no session to answer to")
	case r.GetIdempotencyId() == "":
		return nil, errors.New("IdempotencyId is missing, so the content has no name")
	case r.GetDataAvailableNotificationReferenceId() == "":
		return nil, errors.New("DataAvailableNotificationReferenceId is missing, so it is not known for which events")
	case !known:
		return nil, fmt.Errorf("ResponseFormatRequested: want Xml or Json, got %q", r.GetResponseFormatRequested())
	}
	parent, state := traceOf(m)
	return &Request{
		TraceParent: parent, TraceState: state,
		ID: r.GetRequestId(), IdempotencyID: r.GetIdempotencyId(), List: r.GetDataAvailableNotificationReferenceId(),
		ContentType: r.GetMessageType(), Format: format, Version: r.GetResponseFromatVersion(),
		exchange: contentContainer{c.o.Exchange},
	}, nil
}

// timeLeft returns how long the hub waits for the answer to a request that was
// just received. If the clocks of the bus and of this process disagree, it is
// the whole time to live, because the bus does not deliver expired messages.
func (c *Client) timeLeft(m *azservicebus.ReceivedMessage) time.Duration {
	left := contract.ReplyWithin
	if m.TimeToLive != nil && *m.TimeToLive < left {
		left = *m.TimeToLive
	}
	if m.ExpiresAt != nil {
		if d := m.ExpiresAt.Sub(c.o.Now()); d > 0 && d < left {
			left = d
		}
	}
	return left
}
