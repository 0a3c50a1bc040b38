package hub

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// The interfaces to domains that produce content. Each transport has an adapter that implements them.

// A Requester sends content requests to domains.
type Requester interface {
	// Request asks the domain of r for the content of a bundle. It waits for the reply until ctx ends, some time after
	// r.By. It fails with Unavailable if the domain cannot be reached, and with Busy if too many requests are running.
	// If the domain reports a failure, Request returns a Reply and no error. There may be several requests for one
	// bundle at the same time, on any nodes.
	Request(ctx context.Context, r ContentRequest) (Reply, error)
}

// A ContentRequest is a request for the content of one bundle.
type ContentRequest struct {
	Recipient   domain.ActorID
	Origin      domain.Origin // Origin is the domain that receives the request
	Bundle      domain.BundleID
	ContentType domain.ContentType
	Format      domain.Format
	Version     string              // Version is the version of the format, such as 1.0
	List        string              // List is the name of the exchange object with the event ids, 16 bytes each
	Trace       domain.TraceContext // Trace is the trace of the Peek that needs the content
	By          time.Time           // By is the deadline for the reply; a domain may ignore a request that arrives later
}

// A Reply is a domain's reply to a ContentRequest.
type Reply struct {
	URI     string                // URI is where the content is stored; "" if the domain has failed
	Failure domain.ContentFailure // Failure tells why the domain has failed; its field Failures is not used
}

// A Notifier sends notices of dequeued and removed bundles to domains and subscribers.
type Notifier interface {
	// Notify returns after the notice is stored for the domain or the subscribers. It may be called again with the same
	// notice.
	Notify(ctx context.Context, n domain.Notice) error
}

// ProcessID returns the name of a bundle in the original protocol.
func ProcessID(bundle domain.BundleID, recipient domain.ActorID) string {
	return bundle.String() + "_" + recipient.String()
}
