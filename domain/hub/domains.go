package hub

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// What the hub asks of the domains that make the content of their bundles
// themselves, over whatever they are reached by.

// A Requester asks domains for content.
type Requester interface {
	// Request asks the domain of r for the content of a bundle, and waits for its
	// reply until ctx ends, which is some while after r.By. It fails
	// with Unavailable if the domain cannot be asked, and with Busy if too many are
	// being asked; what the domain says is a Reply, that it has failed included. Any
	// number of calls for one bundle may be under way, on any nodes.
	Request(ctx context.Context, r ContentRequest) (Reply, error)
}

// A ContentRequest is for the content of one bundle.
type ContentRequest struct {
	Recipient   domain.ActorID
	Origin      domain.Origin // the domain that is asked
	Bundle      domain.BundleID
	ContentType domain.ContentType
	Format      domain.Format
	Version     string              // of the format, such as 1.0
	List        string              // the shared object with the ids of the bundle's events, 16 bytes each
	Trace       domain.TraceContext // the Peek on whose behalf the domain is asked
	By          time.Time           // when the domain has to be done; a request that it gets later is of no use
}

// A Reply is what a domain has answered.
type Reply struct {
	URI     string         // of the content that it has left; "" if it has failed
	Failure domain.Trouble // why; Failures is not set
}

// A Notifier tells domains that their content is in safe hands.
type Notifier interface {
	// Notify returns once the notice is where its domain, or those who serve its subscribers,
	// will find it. A notice may come again; it has the same identity then.
	Notify(ctx context.Context, n domain.Notice) error
}

// ProcessID is what the original protocol calls a bundle of a recipient.
func ProcessID(bundle domain.BundleID, recipient domain.ActorID) string {
	return bundle.String() + "_" + recipient.String()
}
