package repository

import (
	"context"
	"time"
)

// DeadLetterOrders are the records of operators' orders about dead letters of Service Bus queues. Such
// a queue belongs to no actor, and a change of it cannot be stored in one write with its record. So the
// record is written first, and the outcome is added afterwards.
//
// A record without an outcome means that the order is being carried out, or that its node has died
// meanwhile.
type DeadLetterOrders interface {
	// BeginDeadLetterOrder stores the record of an order, with an ID and a time that the store sets,
	// and returns it as stored.
	BeginDeadLetterOrder(ctx context.Context, order DeadLetterOrder) (DeadLetterOrder, error)

	// EndDeadLetterOrder stores the outcome of an order that BeginDeadLetterOrder has
	// returned. It may be repeated.
	EndDeadLetterOrder(ctx context.Context, order DeadLetterOrder) error

	// DeadLetterOrders returns up to limit records of a queue, the newest first.
	DeadLetterOrders(ctx context.Context, queue string, limit int) ([]DeadLetterOrder, error)
}

// A DeadLetterOrder is the record of an operator's order about dead letters of one queue.
type DeadLetterOrder struct {
	Order
	ID    string
	What  string    // look, resend or delete
	When  time.Time // when it began, by the clock of the node
	Queue string

	Number    int64  // of the dead letter; 0 if the order is about several
	MessageID string // of the dead letter, as set by its sender
	Reason    string // of the dead letter, or the common one of several

	Outcome string // "" until the order has ended
	Letters int    // number of dead letters that were looked at, sent again or deleted
}
