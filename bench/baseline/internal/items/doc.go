// Package items wraps azcosmos for the old layouts, with one method for each kind of
// request.
//
// A throttled request is resent after the time that the account requests, until its
// context ends. Other requests are never resent. The layouts are measured on an account
// that throttles, so giving up would end the measurement.
//
// An error of a method is a domain error: Uncertain if it is unknown whether the
// request was executed; Unknown if the request was rejected, with the status that
// Status returns.
package items
