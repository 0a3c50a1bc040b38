package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// An ObjectTopic keeps the changes of the current state of objects ([Objects]) that were not published to
// [domain.ObjectsTopic]. The write that changes the current state stores them: there is no change of the one
// without the other. Any node may call any method at any time, and a call may be repeated.
type ObjectTopic interface {
	// Observe has f called with each change that this process stores, soon after it is stored. It is
	// called before the first change. f does not wait.
	Observe(f func(domain.ObjectChange))

	// Remove removes changes that were published. Removing what is not there is no error.
	Remove(ctx context.Context, changes []domain.ObjectChange) error

	// Unpublished returns up to limit changes from before a time, or from so long [Ahead] of it that the
	// clock of the node which stored them is wrong. An empty result means that no other change is left. Those that it
	// returns along with an error are there all the same.
	Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.ObjectChange, error)
}
