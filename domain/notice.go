package domain

import "time"

// A Notice reports to one audience that a recipient has dequeued a bundle. The audience is the
// domain that produced the content, the subscribers of the recipient, or the watchers of the
// bundle. A Notice for ForWatchersOfRemoval reports that the retention has removed a bundle.
type Notice struct {
	Audience  Audience
	Recipient ActorID
	Origin    Origin // origin of the bundle's events
	Group     Group
	Bundle    BundleID
	List      string       // name of the bundle's event list; set only for the domain
	Events    int          // number of events in the bundle; set only for subscribers
	Version   int64        // version of the bundle's change; set only for watchers
	Number    int64        // ascends with each notice for the recipient, group and audience; 0: the bundle was removed
	Since     time.Time    // time of the dequeue or removal, by the clock of the node that performed it
	Peeked    TraceContext // the Peek that opened the bundle; zero: unknown
}

// Event returns the event that the watchers of the bundle receive.
func (n *Notice) Event() ChangeEvent {
	if n.Audience == ForWatchersOfRemoval {
		return ResourceDeleted
	}
	return ResourceUpdated
}

// An Audience says who receives a notice.
type Audience int

// The audiences.
const (
	ForDomain      Audience = iota
	ForSubscribers          // subscriptions to [DequeuedTopic]
	ForWatchers             // watches of a bundle that was dequeued

	// ForWatchersOfRemoval means the watches of a bundle that the retention has removed. At most
	// one notice for them exists per bundle, and it may precede or follow other notices.
	ForWatchersOfRemoval
)
