package domain

import "time"

// A Warning reports that deliveries of a cursor are about to fail or expire, while an operator
// can still prevent it.
type Warning struct {
	Kind  WarningKind
	Count int       // number of deliveries, for LastAttempts
	At    time.Time // time of the first failure, for ReceiverFailing; time of the removal, for MessagesExpiring
}

// A WarningKind is the kind of a Warning.
type WarningKind int

// The kinds of warnings.
const (
	ReceiverFailing  WarningKind = iota // all calls have failed for at least FailingFor
	LastAttempts                        // deliveries have at most a third of their attempts left
	MessagesExpiring                    // the oldest waiting message will be removed within ExpiringWithin
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

// Warnings returns the warnings of a cursor, in the order of their kinds. expires is the time at
// which the oldest waiting message will be removed; zero: no message waits.
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

// CanWarn reports whether the cursor may have warnings even if no message waits for it.
func (c *Cursor) CanWarn() bool {
	return c.standing.Failures > 0 || c.standing.State == Paused || c.retries.len() > 0
}

// lateFrom returns the number of failed attempts after which at most a third of the attempts is
// left.
func (p *Policy) lateFrom() int { return max((2*p.Attempts+2)/3, 1) }
