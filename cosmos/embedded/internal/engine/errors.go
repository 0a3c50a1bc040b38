package engine

import (
	"fmt"
	"net/http"
	"time"
)

// An Error is the error of a failed request, with its HTTP status on Cosmos DB.
type Error struct {
	Status    int
	SubStatus int
	Message   string
	Charge    Charge

	RetryAfter time.Duration // retry delay, only with status 429
}

func (e *Error) Error() string { return e.Message }

func newErrorf(status int, format string, args ...any) *Error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// A DamageError reports a damaged entry in the file. It wraps disk.ErrDamaged.
type DamageError struct {
	Partition Partition // partition of the damaged entry; "" if unknown
	err       error
}

func (e *DamageError) Error() string { return e.err.Error() }

// Unwrap returns the error that describes the entry.
func (e *DamageError) Unwrap() error { return e.err }

func badRequest(format string, args ...any) *Error {
	return newErrorf(http.StatusBadRequest, format, args...)
}

// checkETag returns an error unless ifMatch is the current etag.
func checkETag(ifMatch, etag string) error {
	if ifMatch == "" || ifMatch == "*" || ifMatch == etag {
		return nil
	}
	return newErrorf(http.StatusPreconditionFailed, "the etag of the resource is not the one in If-Match")
}

func notFound(what, id string) *Error {
	return newErrorf(http.StatusNotFound, "%s %q does not exist", what, id)
}
