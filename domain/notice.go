package domain

import "time"

// A Notice says that a recipient holds a bundle safely: to the domain that has made its
// content, to the subscribers of the recipient, or to those that watch the bundle.
type Notice struct {
	Audience  Audience
	Recipient ActorID
	Origin    Origin // the domain
	Group     Group
	Bundle    BundleID
	List      string    // of the bundle; only for its domain
	Events    int       // of the bundle; only for subscribers
	Version   int64     // of the change of the bundle; only for watchers
	Number    int64     // ascends with each notice of the recipient and group for the audience
	Since     time.Time // by the clock of the node that closed the bundle
}

// An Audience is what a notice is for.
type Audience int

// The audiences.
const (
	ForDomain      Audience = iota
	ForSubscribers          // the subscriptions to [DequeuedTopic]
	ForWatchers             // the watches of the bundle
)
