package repository

import (
	"context"
	"time"
)

// DeadLetterOrders are the records of what operators do to dead letters of queues of Service
// Bus. A queue belongs to no actor, and what happens in it cannot be one write with its record.
// So the record is written first, and gets its outcome afterwards.
//
// A record without an outcome is that of an order which is being carried out, or whose node
// has died meanwhile.
type DeadLetterOrders interface {
	// BeginDeadLetterOrder stores the record of an order, with an ID and a time of the
	// store, and returns it as it is stored.
	BeginDeadLetterOrder(ctx context.Context, order DeadLetterOrder) (DeadLetterOrder, error)

	// EndDeadLetterOrder stores the outcome of an order that BeginDeadLetterOrder has
	// returned. It may be repeated.
	EndDeadLetterOrder(ctx context.Context, order DeadLetterOrder) error

	// DeadLetterOrders returns up to limit records of a queue, the newest first.
	DeadLetterOrders(ctx context.Context, queue string, limit int) ([]DeadLetterOrder, error)
}

// A DeadLetterOrder is the record of what an operator does to dead letters of one queue.
type DeadLetterOrder struct {
	Order
	ID    string
	What  string    // look, resend, delete
	When  time.Time // when it began, by the clock of the node
	Queue string

	Number    int64  // of the dead letter; 0 if the order is about several
	MessageID string // of the dead letter, as its sender has set it
	Reason    string // that of the dead letter, or that all of several have

	Outcome string // "" until the order has ended
	Letters int    // that were looked at, sent again or deleted
}
