package repository

import (
	"context"
	"time"
)

// DeadLetterActions are the records of what operators do to dead letters of queues of Service
// Bus. A queue belongs to no actor, and what happens in it cannot be one write with its record.
// So the record is written first, and gets its outcome afterwards.
//
// A record without an outcome is that of an action which is being carried out, or whose node
// has died meanwhile.
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

// A DeadLetterAction is the record of what an operator does to dead letters of one queue.
type DeadLetterAction struct {
	AdminAction
	ID    string
	What  string    // look, resend, delete
	When  time.Time // when it began, by the clock of the node
	Queue string

	Number    int64  // of the dead letter; 0 if the action is about several
	MessageID string // of the dead letter, as its sender has set it
	Reason    string // that of the dead letter, or that all of several have

	Outcome string // "" until the action has ended
	Letters int    // that were looked at, sent again or deleted
}
