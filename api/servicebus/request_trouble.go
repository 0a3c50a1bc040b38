package servicebus

import (
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/messagehub/messagehub/domain"
)

// A trouble is what can be done about an error of the client. It is decided here,
// and nowhere else.
type trouble struct {
	advice  string // to an operator
	again   bool   // trying again may help without anybody's help
	once    bool   // but not more than once
	relink  bool   // this sender is no good any more
	replace bool   // this client is no good any more

	said string // by the client
}

// errorf says what failed, and what to do about it. It does not wrap what the client
// has said, which may be that a context of ours has ended: callers would take it for
// theirs.
func (t trouble) errorf(kind domain.Kind, format string, args ...any) error {
	return domain.Errorf(kind, "%s: %s: %s", fmt.Sprintf(format, args...), t.advice, printable(t.said))
}

const adviceMissing = "there is no such queue; create it, or mend its name in the configuration"

// unauthorized is trouble with a key that has changed, or with the right one: another
// client can tell.
var unauthorized = trouble{advice: "the bus does not let this hub use the queue; check its key, or its role", again: true, once: true, replace: true}

// troubleOf says what can be done about err. What is not known is taken for a
// connection that was lost, since that has many names.
func troubleOf(err error) trouble {
	t := trouble{advice: "the bus cannot be reached; check that it is up, and the way to it", again: true, replace: true}
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t = trouble{advice: "the queue takes no message of this size; let it take larger ones"}
	}
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		switch e.Code { //nolint:exhaustive // the others are said of a connection that is gone
		case azservicebus.CodeNotFound:
			t = trouble{advice: adviceMissing}
		case azservicebus.CodeUnauthorizedAccess:
			t = unauthorized
		}
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		switch e.Condition {
		case amqp.ErrCondNotFound:
			t = trouble{advice: adviceMissing}
		case amqp.ErrCondUnauthorizedAccess:
			t = unauthorized
		case amqp.ErrCondNotAllowed:
			t = trouble{advice: "the queue does not allow this; check whether it should require sessions"}
		case amqp.ErrCondResourceLimitExceeded:
			t = trouble{advice: "the queue is full; see why nobody receives from it"}
		case "com.microsoft:entity-disabled":
			t = trouble{advice: "the queue is disabled; enable it"}
		case "com.microsoft:session-cannot-be-locked":
			t = trouble{advice: "the session is still held by a connection that was lost", again: true}
		}
	}
	if _, ended := errors.AsType[*amqp.LinkError](err); ended && !t.replace {
		// Why the bus has ended a link may be long past: only another link can tell.
		t.again, t.once, t.relink = true, true, true
	}
	t.said = err.Error()
	return t
}
