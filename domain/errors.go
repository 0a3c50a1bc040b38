package domain

import (
	"errors"
	"fmt"
)

// A Kind says what a caller can do about an error. It is decided once, where
// the error enters the program, and never again from its text.
type Kind int

// The kinds of error.
const (
	Unknown     Kind = iota // a bug or an outage nobody has classified: tell an operator
	Invalid                 // the request is wrong: do not retry it
	NotFound                // what was named is not there for this caller
	Conflict                // another writer won: read again, then decide
	Busy                    // throttled or at a limit: pause, then retry
	Uncertain               // it may or may not have happened: retry with the same ids
	Unavailable             // it did not happen, the store cannot be reached: retry later
	Damaged                 // stored data contradicts itself: tell an operator, do not retry
	NewerFormat             // a newer version has stored it, nothing was changed: retry with a node of that version
)

var kindNames = [...]string{"unknown", "invalid", "not found", "conflict", "busy", "uncertain", "unavailable", "damaged", "newer format"}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return kindNames[Unknown]
	}
	return kindNames[k]
}

// ErrNoData reports that nothing waits for an actor. It is an answer, not a
// failure, and it means that and nothing else.
var ErrNoData = errors.New("no data available")

// An Error is an error with a Kind.
type Error struct {
	kind Kind
	err  error
}

// Errorf is fmt.Errorf with a Kind; %w keeps the cause.
func Errorf(k Kind, format string, args ...any) error {
	return &Error{k, fmt.Errorf(format, args...)}
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error that was classified.
func (e *Error) Unwrap() error { return e.err }

// KindOf returns the Kind of the outermost classified error in err's chain,
// and Unknown if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.kind
	}
	return Unknown
}
