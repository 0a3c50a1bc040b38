package domain

import (
	"slices"
	"time"
)

// An Expiry describes consecutive messages that were removed from the stream at the end of their
// retention, before the cursor took them.
type Expiry struct {
	From EntryID   // entry of the first expired message
	To   int64     // number of the entry after the last expired message
	At   time.Time // time at which the cursor passed the messages
}

// MaxExpiries is the maximum number of expiries in a Standing. Older ones are dropped, but
// Counters.Expired still includes them.
const MaxExpiries = 8

// Count returns the number of messages that expired.
func (x *Expiry) Count() int64 { return x.To - x.From.Number }

// Reason returns the text that explains why the messages are not delivered.
func (x *Expiry) Reason() string {
	return "their retention had passed before the subscription came to them"
}

// Expiry returns the stored expiry that includes the given entry, or nil.
func (s *Standing) Expiry(e EntryID) *Expiry {
	for i := range s.Expiries {
		if x := &s.Expiries[i]; x.From.Priority == e.Priority && x.From.Number <= e.Number && e.Number < x.To {
			return x
		}
	}
	return nil
}

// addExpiry records that entries of one priority have expired: from, and all later ones with
// numbers below to.
func (s *Standing) addExpiry(from EntryID, to int64, now time.Time) {
	for i := range s.Expiries {
		if x := &s.Expiries[i]; x.From.Priority == from.Priority && x.To == from.Number {
			x.To, x.At = to, now
			return
		}
	}
	s.Expiries = append(s.Expiries, Expiry{From: from, To: to, At: now})
	s.Expiries = slices.Delete(s.Expiries, 0, max(len(s.Expiries)-MaxExpiries, 0))
}
