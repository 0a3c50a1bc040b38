package engine

import (
	"fmt"
	"net/http"
	"time"
)

// An Error is an answer other than success, with the HTTP status that stands
// for it in Cosmos DB.
type Error struct {
	Status    int
	SubStatus int
	Message   string
	Charge    Charge

	RetryAfter time.Duration // of a 429
}

func (e *Error) Error() string { return e.Message }

func newErrorf(status int, format string, args ...any) *Error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// A DamageError reports a damaged place in the file. It wraps disk.ErrDamaged.
type DamageError struct {
	Partition Partition // in which the place is; "" if that is not known
	err       error
}

func (e *DamageError) Error() string { return e.err.Error() }

// Unwrap returns the error that describes the place.
func (e *DamageError) Unwrap() error { return e.err }

func badRequest(format string, args ...any) *Error {
	return newErrorf(http.StatusBadRequest, format, args...)
}

// checkETag refuses a change of what is no longer as its caller knows it.
func checkETag(ifMatch, etag string) error {
	if ifMatch == "" || ifMatch == "*" || ifMatch == etag {
		return nil
	}
	return newErrorf(http.StatusPreconditionFailed, "the etag of the resource is not the one in If-Match")
}

func notFound(what, id string) *Error {
	return newErrorf(http.StatusNotFound, "%s %q does not exist", what, id)
}
