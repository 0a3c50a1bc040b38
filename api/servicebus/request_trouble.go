package servicebus

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// A trouble is what can be done about an error of the client. It is decided here,
// and nowhere else.
type trouble struct {
	advice  string // to an operator
	again   bool   // trying again may help without anybody's help
	replace bool   // this client is no good any more
}

// troubleOf says what can be done about err. What is not known is taken for a
// connection that was lost, since that has many names.
func troubleOf(err error) trouble {
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return trouble{advice: "the queue takes no message of this size; let it take larger ones"}
	}
	if said, ok := errors.AsType[*azservicebus.Error](err); ok {
		switch said.Code { //nolint:exhaustive // the others are said of a connection that is gone
		case azservicebus.CodeNotFound:
			return trouble{advice: "there is no such queue; create it, or mend its name in the configuration"}
		case azservicebus.CodeUnauthorizedAccess:
			return trouble{advice: "the bus does not let this hub use the queue; check its key, or its role", replace: true}
		}
	}
	if said, ok := errors.AsType[*amqp.Error](err); ok {
		switch said.Condition { //nolint:exhaustive // the others pass
		case amqp.ErrCondNotFound:
			return trouble{advice: "there is no such queue; create it, or mend its name in the configuration"}
		case amqp.ErrCondUnauthorizedAccess:
			return trouble{advice: "the bus does not let this hub use the queue; check its key, or its role", replace: true}
		case amqp.ErrCondNotAllowed:
			return trouble{advice: "the queue does not allow this; check whether it should require sessions"}
		case amqp.ErrCondResourceLimitExceeded:
			return trouble{advice: "the queue is full; see why nobody receives from it"}
		case "com.microsoft:entity-disabled":
			return trouble{advice: "the queue is disabled; enable it"}
		case "com.microsoft:session-cannot-be-locked":
			return trouble{advice: "the session is still held by a connection that was lost", again: true}
		}
	}
	return trouble{advice: "the bus cannot be reached; check that it is up, and the way to it", again: true, replace: true}
}
