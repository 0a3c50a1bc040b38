package api

import (
	"errors"
	"net"
)

// A bodyError means that the body of a request could not be read, because of the client or its
// connection.
type bodyError struct{ cause error }

func (e *bodyError) Error() string { return "read the body: " + e.cause.Error() }

func (e *bodyError) Unwrap() error { return e.cause }

// problem returns e as a problem with status 400. Its detail starts with outcome, which should say
// that the request changed nothing.
func (e *bodyError) problem(outcome string) error {
	if _, ok := errors.AsType[net.Error](e.cause); ok {
		return &problemError{problem: bodyCut, detail: outcome + ": the connection ended before the body did. Send the request again.", cause: e}
	}
	return &problemError{
		problem: invalid, close: true, cause: e,
		detail: outcome + ": the body is not in a valid chunked transfer coding (RFC 9112). Correct the sender.",
	}
}
