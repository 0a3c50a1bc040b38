package delivery

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Ports are the stores and callers that an Engine uses.
type Ports struct {
	Streams   repository.Streams
	Cursors   repository.Cursors
	Shards    repository.Shards
	Nodes     repository.Nodes // nil: the node owns all shards
	Receivers Receivers
	Caller    Caller
}

// Receivers finds the receivers of cursors. It is safe for concurrent use.
type Receivers interface {
	// Receiver returns the receiver of a cursor. It fails with NotFound if the receiver was
	// deleted; then the deliveries of the cursor are cancelled. The result may be stale unless
	// isCurrent is true.
	Receiver(ctx context.Context, id domain.CursorID, isCurrent bool) (Receiver, error)
}

// A Receiver describes how the receiver of a cursor is called.
type Receiver struct {
	Subscription domain.Subscription
	Policy       domain.Policy
	Concurrency  int                          // limit for the calls under way; 0: the limit of the engine
	MaxRate      float64                      // limit for the calls per second; 0: no limit
	IsPaused     bool                         // the receiver is not called until its owner resumes it
	Resumed      int                          // number of times that its owner has resumed it
	KeepsMarks   bool                         // the cursor keeps marks of its progress; see domain.Mark
	IsOrdered    bool                         // deliveries are made in the order of the stream; see domain.Owner
	Matches      func(*repository.Entry) bool // filter of the receiver; nil: every message matches
	// Compile returns the filter of a replay; nil: no replay has a filter.
	Compile func(expression string) (func(*repository.Entry) bool, error)
	Target  any // data for the Caller; the engine does not use it
}

// A Caller calls receivers. It is safe for concurrent use.
type Caller interface {
	// Call calls the receiver of c and returns its answer; an error is an Answer without a
	// status. If it cannot read the message, the answer is Unread or Lost: neither counts as an
	// attempt. After Unread the engine calls again later, and continues with the other
	// deliveries of the receiver; after Lost the delivery is a dead letter with the error as
	// its reason. Call returns soon after ctx ends. The engine sets the times at which the call
	// began and ended.
	Call(ctx context.Context, c Call) domain.Answer
}

// A Call is a message for a receiver.
type Call struct {
	Cursor   domain.CursorID
	Receiver *Receiver
	Entry    *repository.Entry // shared with other calls: it is only read
	Attempt  int               // number of failed attempts: 0 for the first call
}
