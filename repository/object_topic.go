package repository

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// An ObjectTopic stores the changes of the current state of objects ([Objects]) that were not published
// to [domain.ObjectsTopic] yet. The write that changes the current state of an object also stores the
// change, atomically. Any node may call any method at any time, and a call may be repeated.
type ObjectTopic interface {
	// Observe sets the function that is called with each change that this process stores, soon after
	// the write. The caller calls Observe before the first change. f must not block.
	Observe(f func(domain.ObjectChange))

	// Remove removes changes that were published. Removing a missing change is not an error.
	Remove(ctx context.Context, changes []domain.ObjectChange) error

	// Unpublished returns up to limit changes. It selects changes whose time is earlier than the
	// parameter before, and also changes whose time is later by more than [MaxClockAhead], because the
	// clock of their node was wrong. An empty result means that no change has such a time. Changes that
	// are returned together with an error are valid.
	Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.ObjectChange, error)
}
