package domain

import "time"

// A Warning reports that deliveries of a cursor are about to fail or expire, while an operator
// can still prevent it.
type Warning struct {
	Kind  WarningKind
	Count int       // number of deliveries, for LastAttempts
	At    time.Time // since when, for ReceiverFailing; until when, for MessagesExpiring
}

// A WarningKind is what a Warning is about.
type WarningKind int

// The kinds of warnings.
const (
	ReceiverFailing  WarningKind = iota // all calls have failed for FailingFor, or longer
	LastAttempts                        // deliveries have a third of their attempts left, or fewer
	MessagesExpiring                    // the oldest message that waits is removed within ExpiringWithin
)

// WarningKinds are all kinds, in ascending order.
var WarningKinds = [...]WarningKind{ReceiverFailing, LastAttempts, MessagesExpiring}

// String returns the name of a kind in the HTTP API and in metrics.
func (k WarningKind) String() string {
	return [...]string{"failing", "last-attempts", "expiring"}[k]
}

// Limits of the warnings.
const (
	FailingFor     = time.Hour
	ExpiringWithin = 7 * 24 * time.Hour
)

// Warnings returns the warnings of a cursor, in the order of their kinds. expires is when the
// oldest waiting message is removed; zero if nothing waits.
func (s *Standing) Warnings(expires, now time.Time) []Warning {
	if s.State == Closed {
		return nil
	}
	var all []Warning
	if s.State == Active && s.Failures > 0 && !s.FailedSince.IsZero() && now.Sub(s.FailedSince) >= FailingFor {
		all = append(all, Warning{Kind: ReceiverFailing, At: s.FailedSince})
	}
	if s.Late > 0 {
		all = append(all, Warning{Kind: LastAttempts, Count: s.Late})
	}
	if !expires.IsZero() && expires.Sub(now) <= ExpiringWithin {
		all = append(all, Warning{Kind: MessagesExpiring, At: expires})
	}
	return all
}

// MayWarn reports whether the cursor may have warnings although no message waits for it.
func (c *Cursor) MayWarn() bool {
	return c.standing.Failures > 0 || c.standing.State == Paused || c.retries.len() > 0
}

// lateFrom returns the number of failed attempts from which on at most a third of the attempts
// is left.
func (p *Policy) lateFrom() int { return max((2*p.Attempts+2)/3, 1) }
