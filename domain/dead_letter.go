package domain

// The reasons of dead letters. The texts are stored.
const (
	reasonSpent  = "the last attempt failed"
	reasonPoison = "every node that called with it ended"
)

// IsPoison reports whether a delivery became a dead letter because nodes crashed during its calls,
// rather than because its attempts failed.
func (r *Retry) IsPoison() bool { return r.Dead && r.Reason == reasonPoison }
