package domain

// An Ordering says which events the bundles of a group keep in order. It applies when a bundle
// is opened: a bundle that is open when the ordering of a hub changes stays as it is.
type Ordering string

// The orderings.
const (
	// ByCabinet keeps each cabinet in order. A bundle takes as many events of its cabinet as
	// fit, so they overtake older events of other cabinets.
	ByCabinet Ordering = "cabinet"

	// ByRecipient keeps all events of a recipient and group in order. A bundle ends before an
	// event if an older event waits in another cabinet, so bundles may be small.
	ByRecipient Ordering = "recipient"
)
