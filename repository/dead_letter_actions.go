package repository

import (
	"context"
	"time"
)

// DeadLetterActions are the records of operators' actions on dead letters of Service Bus queues. Such
// a queue belongs to no actor, and a change of it cannot be stored in one write with its record. So the
// record is written first, and the outcome is added afterwards.
//
// A record without an outcome means that the action is being carried out, or that its node has died
// meanwhile.
type DeadLetterActions interface {
	// BeginDeadLetterAction stores the record of an action, with an ID and a time of the
	// store, and returns it as it is stored.
	BeginDeadLetterAction(ctx context.Context, action DeadLetterAction) (DeadLetterAction, error)

	// EndDeadLetterAction stores the outcome of an action that BeginDeadLetterAction has
	// returned. It may be repeated.
	EndDeadLetterAction(ctx context.Context, action DeadLetterAction) error

	// DeadLetterActions returns up to limit records of a queue, the newest first.
	DeadLetterActions(ctx context.Context, queue string, limit int) ([]DeadLetterAction, error)
}

// A DeadLetterAction is the record of an operator's action on dead letters of one queue.
type DeadLetterAction struct {
	AdminAction
	ID    string
	What  string    // look, resend or delete
	When  time.Time // when it began, by the clock of the node
	Queue string

	Number    int64  // of the dead letter; 0 if the action is about several
	MessageID string // of the dead letter, as set by its sender
	Reason    string // of the dead letter, or the common one of several

	Outcome string // "" until the action has ended
	Letters int    // number of dead letters that were looked at, sent again or deleted
}
