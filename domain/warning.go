package domain

import "time"

// A Warning reports that deliveries of a cursor are about to fail or expire, while an operator
// can still prevent it.
type Warning struct {
	Kind  WarningKind
	Count int       // number of deliveries; set for LastAttempts
	At    time.Time // for ReceiverFailing, time of the first failure; for MessagesExpiring, time of the removal
}

// A WarningKind is the kind of a Warning.
type WarningKind int

// The kinds of warnings.
const (
	ReceiverFailing  WarningKind = iota // all calls have failed for at least FailingFor
	LastAttempts                        // some deliveries have at most a third of their attempts left
	MessagesExpiring                    // the oldest waiting message will be removed within ExpiringWithin
)

// WarningKinds lists all kinds in ascending order.
var WarningKinds = [...]WarningKind{ReceiverFailing, LastAttempts, MessagesExpiring}

// String returns the name of k that the HTTP API and the metrics use.
func (k WarningKind) String() string {
	return [...]string{"failing", "last-attempts", "expiring"}[k]
}

// The limits at which warnings begin.
const (
	FailingFor     = time.Hour
	ExpiringWithin = 7 * 24 * time.Hour
)

// Warnings returns a cursor's warnings, ordered by kind. expires is the time at which the oldest
// waiting message will be removed; it is zero if no message waits.
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

// CanWarn reports whether the cursor may have warnings even if no message waits.
func (c *Cursor) CanWarn() bool {
	return c.standing.Failures > 0 || c.standing.State == Paused || c.retries.len() > 0
}

// lateFrom returns the number of failed attempts from which a delivery is late: at most a third of
// its attempts remain.
func (p *Policy) lateFrom() int { return max((2*p.Attempts+2)/3, 1) }
