package busclient

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// A Reason is the reason why a call to the client failed.
type Reason int

// The reasons.
const (
	None         Reason = iota // no error
	Unreachable                // the connection was lost, or the error is unknown
	NotFound                   // the queue does not exist
	Unauthorized               // the bus refuses the key or the role
	NotAllowed                 // the queue does not allow the link, for instance because the queue has no sessions
	TooLarge                   // the queue does not accept messages of this size
	Full                       // the queue has reached its maximum size
	Disabled                   // the queue is disabled
	SessionHeld                // another connection holds the session, perhaps a lost connection
	LockLost                   // the lock of the message or the session has expired
	Timeout                    // the bus found nothing within the time that the client allowed, for instance no session
	Closed                     // the client is closed
)

// A Failure classifies an error from Microsoft's client, and contains advice for an operator. It
// does not wrap the error: a caller might mistake the end of an internal context for the end of its
// own context.
type Failure struct { //nolint:errname // as in package client of cosmos: what failed, and why
	Reason Reason
	Advice string // text that tells an operator what to do

	Retry     bool // another attempt may succeed without an operator's action
	RetryOnce bool // one further attempt is useful; if it fails as well, further retries are useless
	Permanent bool // retries are useless until a setting, a right or the message is changed

	ReplaceClient bool // the client is permanently broken
	LinkEnded     bool // the bus has ended the link of the sender or receiver, which can no longer be used

	err error
}

// Error returns the advice, and the client's error text in a printable form.
func (f *Failure) Error() string { return f.Advice + ": " + Printable(f.err.Error()) }

const (
	adviceUnreachable  = "the bus cannot be reached; check that it is up, and the way to it"
	adviceNotFound     = "there is no such queue; create it, or correct its name in the configuration"
	adviceUnauthorized = "the bus does not let this hub use the queue; check its key, or its role"
)

// failures contains the Failure for each reason. Unauthorized replaces the client, because the key
// may have changed.
var failures = map[Reason]Failure{
	Unreachable:  {Advice: adviceUnreachable, Retry: true, ReplaceClient: true},
	LockLost:     {Advice: adviceUnreachable, Retry: true, ReplaceClient: true},
	Timeout:      {Advice: adviceUnreachable, Retry: true, ReplaceClient: true},
	Closed:       {Advice: adviceUnreachable, Retry: true, ReplaceClient: true, Permanent: true},
	Unauthorized: {Advice: adviceUnauthorized, Retry: true, RetryOnce: true, ReplaceClient: true, Permanent: true},
	SessionHeld:  {Advice: "the session is still held by a connection that was lost", Retry: true},
	NotFound:     {Advice: adviceNotFound, Permanent: true},
	NotAllowed:   {Advice: "the queue does not allow this; check whether it should require sessions", Permanent: true},
	TooLarge:     {Advice: "the queue takes no message of this size; let it take larger ones", Permanent: true},
	Full:         {Advice: "the queue is full; check why its messages are not received"},
	Disabled:     {Advice: "the queue is disabled; enable it"},
}

// codes maps the error codes of the client to reasons.
var codes = map[azservicebus.Code]Reason{
	azservicebus.CodeNotFound:           NotFound,
	azservicebus.CodeUnauthorizedAccess: Unauthorized,
	azservicebus.CodeLockLost:           LockLost,
	azservicebus.CodeTimeout:            Timeout,
	azservicebus.CodeClosed:             Closed,
}

// conditions maps the AMQP error conditions of the bus, which the client returns unchanged, to
// reasons.
var conditions = map[amqp.ErrCond]Reason{
	amqp.ErrCondNotFound:                     NotFound,
	amqp.ErrCondUnauthorizedAccess:           Unauthorized,
	amqp.ErrCondNotAllowed:                   NotAllowed,
	amqp.ErrCondMessageSizeExceeded:          TooLarge,
	amqp.ErrCondResourceLimitExceeded:        Full,
	"com.microsoft:entity-disabled":          Disabled,
	"com.microsoft:session-cannot-be-locked": SessionHeld,
}

// Classify returns the Failure for err. It classifies an unknown error as a lost connection,
// because most unknown errors are caused by one. If err is nil, the Failure has the reason None.
func Classify(err error) *Failure {
	reason := ReasonOf(err)
	f := failures[reason]
	f.Reason, f.err = reason, err
	if _, ended := errors.AsType[*amqp.LinkError](err); ended {
		// The bus may have ended the link because of an error that no longer exists, so one attempt
		// over another link is useful.
		f.LinkEnded, f.Permanent = true, false
		if !f.ReplaceClient {
			f.Retry, f.RetryOnce = true, true
		}
	}
	return &f
}

// ReasonOf returns the Reason of err.
func ReasonOf(err error) Reason {
	if err == nil {
		return None
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		if reason, known := conditions[e.Condition]; known {
			return reason
		}
	}
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		if reason, known := codes[e.Code]; known {
			return reason
		}
	}
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return TooLarge
	}
	return Unreachable
}

// Printable makes untrusted text safe for logs and terminals. The result contains only printable
// characters, up to about 500 bytes.
func Printable(text string) string {
	const limit = 500
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= limit {
		return text
	}
	end := limit
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
