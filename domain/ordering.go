package domain

// An Ordering determines which events the bundles of a group deliver in order. It applies when a
// bundle is opened. If a hub's ordering changes, open bundles do not change.
type Ordering string

// The orderings.
const (
	// ByCabinet preserves the order of each cabinet. A bundle contains as many events of its
	// cabinet as fit, so its events may overtake older events of other cabinets.
	ByCabinet Ordering = "cabinet"

	// ByRecipient preserves the order of all events of a recipient and group. A bundle ends before
	// an event if an older event waits in another cabinet, so bundles may be small.
	ByRecipient Ordering = "recipient"
)
