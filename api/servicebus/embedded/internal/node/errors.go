package node

import (
	"errors"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
)

// The error conditions that Service Bus adds to the AMQP conditions.
const (
	lockLost         amqp.Symbol = "com.microsoft:message-lock-lost"
	sessionLockLost  amqp.Symbol = "com.microsoft:session-lock-lost"
	sessionLocked    amqp.Symbol = "com.microsoft:session-cannot-be-locked"
	messageNotFound  amqp.Symbol = "com.microsoft:message-not-found"
	timedOut         amqp.Symbol = "com.microsoft:timeout"
	serverBusy       amqp.Symbol = "com.microsoft:server-busy"
	entityDisabled   amqp.Symbol = "com.microsoft:entity-disabled"
	entityExists     amqp.Symbol = "com.microsoft:entity-already-exists"
	argumentError    amqp.Symbol = "com.microsoft:argument-error"
	deadLetterAsked  amqp.Symbol = "com.microsoft:dead-letter"
	operationUnknown amqp.Symbol = "amqp:not-implemented"
)

const (
	// lockLostText has the wording that the tests of Azure's clients expect.
	lockLostText = "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue"
	statusGone   = 410
)

// refusals maps each error of the bus to the condition for links and the status for requests.
var refusals = []struct {
	err       error
	condition amqp.Symbol
	status    int32
}{
	{bus.ErrSessionLockLost, sessionLockLost, statusGone},
	{bus.ErrSessionLocked, sessionLocked, 409},
	{bus.ErrNotFound, amqp.NotFound, 404},
	{bus.ErrExists, entityExists, 409},
	{bus.ErrInvalid, argumentError, 400},
	{bus.ErrNotAllowed, amqp.NotAllowed, 400},
	{bus.ErrDisabled, entityDisabled, 403},
	{bus.ErrTimeout, timedOut, 408},
	{bus.ErrQuotaExceeded, amqp.ResourceLimitExceeded, 403},
	{bus.ErrTooLarge, amqp.MessageSizeExceeded, 413},
	{bus.ErrBusy, serverBusy, 503},
	{bus.ErrClosed, serverBusy, 503},
}

// conditionOf returns the AMQP condition and the status for err. For errors that the client did not cause, it returns
// an internal error, so that clients retry.
func conditionOf(err error) (*amqp.Error, int32) {
	var said *amqp.Error
	if errors.As(err, &said) {
		return said, 400
	}
	if errors.Is(err, bus.ErrLockLost) {
		return amqp.Errorf(lockLost, "%s. (%v)", lockLostText, err), statusGone
	}
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return &amqp.Error{Condition: r.condition, Description: err.Error()}, r.status
		}
	}
	return &amqp.Error{Condition: amqp.InternalError, Description: err.Error()}, 500
}
