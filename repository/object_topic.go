package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// An ObjectTopic keeps the changes of the current state of objects ([Objects]) that were not published
// to [domain.ObjectsTopic] yet. They are stored by the write that changes the current state: neither is
// stored without the other. Any node may call any method at any time, and a call may be repeated.
type ObjectTopic interface {
	// Observe sets the function that is called with each change that this process has stored, soon
	// after the write. Observe is called before the first change. f must not block.
	Observe(f func(domain.ObjectChange))

	// Remove removes changes that were published. Removing a missing change is not an error.
	Remove(ctx context.Context, changes []domain.ObjectChange) error

	// Unpublished returns up to limit changes from before a time, or so far [Ahead] of it that the
	// clock of the node which stored them must be wrong. An empty result means that no other change is
	// left. Changes that it returns together with an error are valid.
	Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.ObjectChange, error)
}
