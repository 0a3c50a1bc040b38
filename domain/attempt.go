package domain

import (
	"strings"
	"time"
)

// An Answer is the result of a call to a receiver.
type Answer struct {
	Status     int           // HTTP status; 0: no answer
	Error      string        // reason why the receiver did not answer, or advice about an error status
	RetryAfter time.Duration // pause that the receiver requests
	Began      time.Time
	Took       time.Duration

	// Unread and Lost are set if the receiver was not called, because the message could not be
	// read. If Unread is set, a later attempt may succeed; if Lost is set, no attempt can. Error
	// states the cause.
	Unread, Lost bool
}

// Ended returns the time at which the call ended.
func (a Answer) Ended() time.Time { return a.Began.Add(a.Took) }

// An Attempt is the stored result of one call to a receiver.
type Attempt struct {
	Entry  EntryID
	Number int // number of the call, from 1 for the first call of a delivery
	Began  time.Time
	Took   time.Duration
	Status int
	Error  string
}

// MaxAttemptError is the limit for the text of an Attempt, in bytes.
const MaxAttemptError = 160

// attemptOf returns the Attempt that records the answer a.
func attemptOf(entry EntryID, number int, a Answer) Attempt {
	text := strings.ToValidUTF8(a.Error[:min(len(a.Error), MaxAttemptError)], "")
	return Attempt{Entry: entry, Number: number, Began: a.Began, Took: a.Took, Status: a.Status, Error: text}
}

// A Retry is a delivery that failed. It waits for its next attempt, or is a dead letter.
type Retry struct {
	Position
	Published time.Time
	Attempts  int       // number of failed attempts; a replay resets it to 0
	Replay    int       // number of the last request that replayed the delivery; 0: not replayed
	History   []Attempt // last attempts, up to [MaxHistory]
	Due       time.Time // time at which the next attempt is due
	Dead      bool
	Reason    string // why the delivery is a dead letter
	Unknown   []byte // JSON members of the stored document that this version of the hub does not know
}

// MaxHistory is the limit for the history of a Retry.
const MaxHistory = 16

// digest returns the value that r adds to Standing.Digest.
func (r *Retry) digest() uint64 {
	h := mix(uint64(r.Priority) + 1) //nolint:gosec // not negative
	h = mix(h + uint64(r.Number))    //nolint:gosec // not negative
	if r.Replay > 0 {
		h = mix(h ^ uint64(r.Replay)<<32)
	}
	return mix(h + uint64(r.Attempts)) //nolint:gosec // not negative
}
