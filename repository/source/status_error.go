package source

import (
	"net/http"

	"github.com/messagehub/messagehub/domain"
)

// ErrorOf returns the error for a response whose status is not a success. It is the only function that
// interprets a status; an adapter interprets only what is specific to its protocol. text describes the
// response, without secrets.
func ErrorOf(status int, text string) error {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return domain.Errorf(domain.Busy, "%s", text)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return domain.Errorf(domain.Unavailable, "%s: check the key or the identity, what it may do, the firewall of the store, and the clock of this machine", text)
	case status == http.StatusNotFound:
		return domain.Errorf(domain.NotFound, "%s", text)
	case status >= 300 && status < 400:
		return domain.Errorf(domain.Unavailable, "%s: check the endpoint and the region", text)
	case status == http.StatusRequestTimeout, status >= 500:
		return domain.Errorf(domain.Unavailable, "%s", text)
	default:
		return domain.Errorf(domain.Unknown, "%s", text)
	}
}

// ErrArchived reports content that cannot be read until it is restored.
var ErrArchived = domain.Errorf(domain.Invalid, "the content is archived; restore it first")

// NoBucket returns the error of Stat if the store does not have the bucket. Its kind is not NotFound,
// because NotFound would mean that the object was deleted.
func NoBucket(text string) error {
	return domain.Errorf(domain.Unavailable, "%s: check which store has the bucket", text)
}
