package domain

import "time"

// A Notice tells a domain that a recipient holds a bundle safely whose content it
// has made.
type Notice struct {
	Recipient ActorID
	Origin    Origin // the domain
	Group     Group
	Bundle    BundleID
	List      string    // of the bundle
	Number    int64     // ascends with each notice of the recipient and group
	Since     time.Time // by the clock of the node that closed the bundle
}
