package domain

// The reasons of dead letters. They are stored.
const (
	reasonSpent  = "the last attempt failed"
	reasonPoison = "every node that called with it ended"
)

// IsPoison reports whether a delivery is a dead letter because nodes crashed during its calls,
// and not because its attempts failed.
func (r *Retry) IsPoison() bool { return r.Dead && r.Reason == reasonPoison }
