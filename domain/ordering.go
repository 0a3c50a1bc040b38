package domain

// An Ordering says which events the bundles of a group keep in order. It applies when a bundle
// is opened: if the ordering of a hub changes, bundles that are open do not change.
type Ordering string

// The orderings.
const (
	// ByCabinet keeps each cabinet in order. A bundle has as many events of its cabinet as fit,
	// so its events may overtake older events of other cabinets.
	ByCabinet Ordering = "cabinet"

	// ByRecipient keeps all events of a recipient and group in order. A bundle ends before an
	// event if an older event waits in another cabinet, so bundles may be small.
	ByRecipient Ordering = "recipient"
)
