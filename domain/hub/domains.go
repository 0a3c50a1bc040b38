package hub

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// The ports to domains that produce the content of their bundles. An adapter of each transport
// implements them.

// A Requester asks domains for content.
type Requester interface {
	// Request asks the domain of r for the content of a bundle, and waits for its reply until
	// ctx ends, which is some time after r.By. It fails with Unavailable if the domain cannot
	// be asked, and with Busy if too many requests are under way. A failure that the domain
	// reports is a Reply, not an error. Calls for one bundle may run at the same time, on any
	// nodes.
	Request(ctx context.Context, r ContentRequest) (Reply, error)
}

// A ContentRequest is a request for the content of one bundle.
type ContentRequest struct {
	Recipient   domain.ActorID
	Origin      domain.Origin // the domain that receives the request
	Bundle      domain.BundleID
	ContentType domain.ContentType
	Format      domain.Format
	Version     string              // version of the format, such as 1.0
	List        string              // the shared object with the ids of the bundle's events, 16 bytes each
	Trace       domain.TraceContext // trace of the Peek that needs the content
	By          time.Time           // deadline for the domain's reply; a domain may ignore a request that it receives later
}

// A Reply is the answer of a domain.
type Reply struct {
	URI     string                // URI of the stored content; "" if the domain has failed
	Failure domain.ContentFailure // why the domain has failed; Failures is not set
}

// A Notifier notifies domains and subscribers of bundles that were dequeued or removed.
type Notifier interface {
	// Notify returns once the notice is stored for its domain, or for the subscribers. It may
	// be called again with a notice of the same identity.
	Notify(ctx context.Context, n domain.Notice) error
}

// ProcessID returns the name that the original protocol gives to a bundle of a recipient.
func ProcessID(bundle domain.BundleID, recipient domain.ActorID) string {
	return bundle.String() + "_" + recipient.String()
}
