package domain

import (
	"errors"
	"fmt"
)

// A Kind tells a caller how to react to an error. It is determined once, where the error enters the
// program, and never derived from the error text.
type Kind int

// The kinds of error.
const (
	Unknown     Kind = iota // a bug or an outage that is not classified: notify an operator
	Invalid                 // the request is wrong: do not retry it
	NotFound                // the named item does not exist, or the caller may not see it
	Conflict                // another write came first: read again, then decide
	Busy                    // throttled or at a limit: pause, then retry
	Uncertain               // the write may have happened: retry with the same ids
	Unavailable             // the store cannot be reached and nothing was changed: retry later
	Damaged                 // stored data contradicts itself: notify an operator, do not retry
	NewerFormat             // a newer version of the hub wrote the stored data: retry on a node of that version
)

var kindNames = [...]string{"unknown", "invalid", "not found", "conflict", "busy", "uncertain", "unavailable", "damaged", "newer format"}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return kindNames[Unknown]
	}
	return kindNames[k]
}

// ErrNoData reports that no data waits for an actor. It is a valid reply rather than a failure, and
// is used only for this purpose.
var ErrNoData = errors.New("no data available")

// An Error is an error with a Kind.
type Error struct {
	kind Kind
	err  error
}

// Errorf returns an error with a Kind and the text of fmt.Errorf. The verb %w adds a cause.
func Errorf(k Kind, format string, args ...any) error {
	return &Error{k, fmt.Errorf(format, args...)}
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error to which a Kind was added.
func (e *Error) Unwrap() error { return e.err }

// KindOf returns the Kind of the outermost [Error] in err's chain. It returns Unknown if the chain
// has no Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.kind
	}
	return Unknown
}
