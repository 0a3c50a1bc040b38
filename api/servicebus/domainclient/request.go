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

// A Handler produces the content of a bundle. Its context ends when the hub stops waiting for the
// content. The client reads the returned reader to its end, and closes it if it is an io.Closer.
// After the context has ended, a read must fail or return io.EOF.
//
// A *Failure is sent to the hub unchanged. Any other error or a panic is sent as a Failure with the
// reason InternalError.
type Handler func(ctx context.Context, r *Request) (io.Reader, error)

// A Format is the content format that the actor requested.
type Format string

// The formats.
const (
	FormatJSON Format = "json"
	FormatXML  Format = "xml"
)

// mediaTypes has the media type of a blob for each format.
var mediaTypes = map[Format]string{FormatJSON: "application/json", FormatXML: "application/xml"}

// A Request is the hub's request for the content of one bundle.
type Request struct {
	ID            string  // id of the request, which differs for each attempt
	IdempotencyID string  // id of the bundle, which is the same for each attempt
	ContentType   string  // content type of the events in the bundle
	Format        Format  // requested format of the content
	Version       float64 // requested version of the format; default 1.0
	List          string  // name of the blob that lists the ids of the events

	// TraceParent and TraceState are the W3C Trace Context of the hub's request. Both are "" if the
	// request has no trace context.
	TraceParent, TraceState string

	exchange contentContainer
}

// EventIDs returns the ids of the events whose data is requested, in order.
func (r *Request) EventIDs(ctx context.Context) ([]uuid.UUID, error) {
	return r.exchange.readIDs(ctx, r.List)
}

// A Failure is the reply of a domain that cannot produce the content.
type Failure struct { //nolint:errname // the protocol calls it so
	Reason      Reason
	Description string // text for the operators of the hub
}

func (f *Failure) Error() string { return f.Reason.String() + ": " + f.Description }

// A Reason is the reason for a Failure.
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

// An Answer is a reply that Serve has sent to the hub.
type Answer struct {
	Request *Request
	URI     string   // URI of the content; "" if the reply is a failure
	Bytes   int64    // size of the content in bytes
	Failure *Failure // nil if the reply has content
	Took    time.Duration
}

// largestRequest is the maximum size of a request in bytes, far above the size of any valid
// request.
const largestRequest = 64 << 10

// parseRequest returns the request in a message, or an error if the message contains no request.
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
		return nil, errors.New("RequestId is missing, so the session for the reply is unknown")
	case r.GetIdempotencyId() == "":
		return nil, errors.New("IdempotencyId is missing, so the content has no name")
	case r.GetDataAvailableNotificationReferenceId() == "":
		return nil, errors.New("DataAvailableNotificationReferenceId is missing, so the events are unknown")
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

// timeLeft returns how long the hub still waits for the reply to a request that was just received.
// If the clocks of the bus and this process disagree, it returns the whole time to live: the bus
// delivers no expired message.
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
