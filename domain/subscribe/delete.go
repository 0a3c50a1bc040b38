package subscribe

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Delete deletes a subscription of owner, and returns the time of the deletion. It fails with
// NotFound if owner has no such subscription, and with [ErrChanged] if m does not permit the
// current version.
func (s *Service) Delete(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, m Match) (time.Time, error) {
	now := s.opts.Clock().UTC()
	d, err := s.findOwned(ctx, owner, id)
	isRequest := false
	switch {
	case err == nil:
		isRequest = d.Topic == domain.DequeuedTopic
		if err = s.deleteDefinition(ctx, d, m); err == nil && d.IsSync {
			err = s.unlistCursor(ctx, d) // if a crash prevents this write, the next sender removes the cursor from the list of sync cursors
		}
	case domain.KindOf(err) == domain.NotFound: // an earlier deletion may have been interrupted by a crash
		isRequest = true
		err = s.ports.Definitions.DeleteSubscription(ctx, owner, id, "")
	}
	// After a crash before the following write, the hub publishes events without a subscriber,
	// until the deletion is repeated.
	if isRequest && (err == nil || domain.KindOf(err) == domain.NotFound) {
		if werr := s.ports.Dequeues.WithdrawDequeues(ctx, owner, id); werr != nil {
			return now, werr
		}
	}
	return now, err
}

// deleteDefinition deletes the definition d if m permits its version.
func (s *Service) deleteDefinition(ctx context.Context, d *repository.Definition, m Match) error {
	var version repository.DefinitionVersion
	if len(m.Versions) > 0 {
		if version = d.Version; !m.canChange(version) {
			return newChangedError()
		}
	}
	err := s.ports.Definitions.DeleteSubscription(ctx, d.Owner, d.ID, version)
	s.notifyChange(d.ID, err)
	return m.changeError(err)
}
