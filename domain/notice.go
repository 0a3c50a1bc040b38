package domain

import "time"

// A Notice reports that a recipient has dequeued a bundle, to one audience: the domain that has
// produced its content, the subscribers of the recipient, or the watchers of the bundle.
// Another kind reports to the watchers that the retention has removed a bundle.
type Notice struct {
	Audience  Audience
	Recipient ActorID
	Origin    Origin // the domain
	Group     Group
	Bundle    BundleID
	List      string       // name of the event list of the bundle; only for its domain
	Events    int          // number of events of the bundle; only for subscribers
	Version   int64        // version of the bundle's change; only for watchers
	Number    int64        // ascends with each notice of the recipient and group for the audience; 0 for a removal
	Since     time.Time    // by the clock of the node that closed or removed the bundle
	Peeked    TraceContext // the Peek that opened the bundle; zero: not known
}

// Event returns the event of the bundle for its watchers.
func (n *Notice) Event() ChangeEvent {
	if n.Audience == ForWatchersOfRemoval {
		return ResourceDeleted
	}
	return ResourceUpdated
}

// An Audience is the group of receivers of a notice.
type Audience int

// The audiences.
const (
	ForDomain      Audience = iota
	ForSubscribers          // the subscriptions to [DequeuedTopic]
	ForWatchers             // the watches of the bundle: it was dequeued

	// ForWatchersOfRemoval is for the watches of the bundle: retention has removed it. There is at most
	// one such notice of each bundle. Its order relative to other notices is not defined.
	ForWatchersOfRemoval
)
