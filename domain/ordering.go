package domain

// An Ordering says what the bundles of a group keep in order. It is decided when a
// bundle is opened: one that is open when a hub gets another ordering stays as it
// is.
type Ordering string

// The orderings.
const (
	// ByCabinet keeps each cabinet in order. A bundle takes as many events of its
	// cabinet as go in, and so overtakes older ones of other cabinets.
	ByCabinet Ordering = "cabinet"

	// ByRecipient keeps all events of a recipient and group in order. A bundle ends
	// where an older event waits in another cabinet, so bundles may be small.
	ByRecipient Ordering = "recipient"
)
