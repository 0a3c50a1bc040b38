package repository

import (
	"context"
	"time"
)

// DeadLetterActions stores the records of operators' actions on dead letters of Service Bus queues. A
// change of a Service Bus queue and its record cannot be stored in one write. So the record is written
// before the action, and the outcome is added after it.
//
// A record without an outcome means that the action is in progress, or that its node died during it.
type DeadLetterActions interface {
	// BeginDeadLetterAction stores the record of an action, with an ID and a time that the store sets,
	// and returns the stored record.
	BeginDeadLetterAction(ctx context.Context, action DeadLetterAction) (DeadLetterAction, error)

	// EndDeadLetterAction stores the outcome of an action that BeginDeadLetterAction returned. The call
	// may be repeated.
	EndDeadLetterAction(ctx context.Context, action DeadLetterAction) error

	// DeadLetterActions returns up to limit records of a queue, the newest first.
	DeadLetterActions(ctx context.Context, queue string, limit int) ([]DeadLetterAction, error)
}

// A DeadLetterAction is the record of an operator's action on dead letters of one queue.
type DeadLetterAction struct {
	AdminAction
	ID    string
	What  string    // name of the action: look, resend or delete
	When  time.Time // start of the action, by the clock of the node
	Queue string

	Number    int64  // number of the dead letter; 0 if the action is about several dead letters
	MessageID string // message id of the dead letter, as set by its sender
	Reason    string // reason of the dead letter, or the common reason of several dead letters

	Outcome string // result of the action; "" until the action has ended
	Letters int    // number of dead letters that were viewed, sent again or deleted
}
