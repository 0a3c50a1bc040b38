package domain

import (
	"strings"
	"time"
)

// An Answer is the result of a call to a receiver.
type Answer struct {
	Status     int           // HTTP status; 0: no answer
	Error      string        // why there is no answer, or what to do about an error status
	RetryAfter time.Duration // pause that the receiver asks for
	Began      time.Time
	Took       time.Duration

	// Without a status, the receiver may not have been called, because the message could not be
	// read: Unread if a later attempt may succeed, Lost if not. Error says why.
	Unread, Lost bool
}

// Ended returns when the call ended.
func (a Answer) Ended() time.Time { return a.Began.Add(a.Took) }

// An Attempt is a call whose result is stored.
type Attempt struct {
	Entry  EntryID
	Number int // 1 for the first call of a delivery
	Began  time.Time
	Took   time.Duration
	Status int
	Error  string
}

// MaxAttemptError is the limit for the text of an Attempt, in bytes.
const MaxAttemptError = 160

// attemptOf returns the attempt that a reports.
func attemptOf(entry EntryID, number int, a Answer) Attempt {
	text := strings.ToValidUTF8(a.Error[:min(len(a.Error), MaxAttemptError)], "")
	return Attempt{Entry: entry, Number: number, Began: a.Began, Took: a.Took, Status: a.Status, Error: text}
}

// A Retry is a delivery that failed. It waits for its next attempt, or is a dead letter.
type Retry struct {
	Position
	Published time.Time
	Attempts  int       // failed attempts since it was replayed
	Replay    int       // number of the last request that replayed it; 0: it was not replayed
	History   []Attempt // the last ones, up to [MaxHistory]
	Due       time.Time // time at which the next attempt is due
	Dead      bool
	Reason    string // reason of a dead letter
	Unknown   []byte // members of the document that a newer version has written
}

// MaxHistory is the limit for the history of a Retry.
const MaxHistory = 16

// digest returns the part of a retry in the digest of a cursor.
func (r *Retry) digest() uint64 {
	h := mix(uint64(r.Priority) + 1) //nolint:gosec // not negative
	h = mix(h + uint64(r.Number))    //nolint:gosec // not negative
	if r.Replay > 0 {
		h = mix(h ^ uint64(r.Replay)<<32)
	}
	return mix(h + uint64(r.Attempts)) //nolint:gosec // not negative
}
