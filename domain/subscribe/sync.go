package subscribe

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// ListSync adds a sync subscription's cursor to the sync list of its stream. It does nothing for
// other subscriptions. The call may be repeated, for example after a crash. If d is outdated and the
// subscription is no longer sync, the next publisher that would wait for the cursor removes it from
// the list.
func ListSync(ctx context.Context, streams repository.Streams, d *repository.Definition) error {
	if !d.IsSync {
		return nil
	}
	stream, err := d.Stream()
	if err != nil {
		return err
	}
	return streams.AddSync(ctx, stream, d.ID.Cursor())
}

// checkSync returns an Invalid error if d is a new sync subscription, and its topic already has the
// maximum number of sync subscriptions.
func (s *Service) checkSync(ctx context.Context, d *repository.Definition) error {
	if !d.IsSync {
		return nil
	}
	stream, err := d.Stream()
	if err != nil {
		return err
	}
	listed, err := s.ports.Streams.Sync(ctx, stream)
	if err != nil || len(listed) < domain.MaxSync || slices.Contains(listed, d.ID.Cursor()) {
		return err
	}
	return domain.Errorf(domain.Invalid, "/delivery: want async: %d subscriptions of the topic are sync, which is the limit", domain.MaxSync)
}

// listCursor adds a sync subscription's cursor to the sync list of its stream. If the subscription
// is no longer sync, listCursor removes the cursor.
func (s *Service) listCursor(ctx context.Context, d *repository.Definition, wasSync bool) error {
	if d.IsSync || !wasSync {
		return ListSync(ctx, s.ports.Streams, d)
	}
	return s.unlistCursor(ctx, d)
}

// unlistCursor removes a subscription's cursor from the sync list of its stream.
func (s *Service) unlistCursor(ctx context.Context, d *repository.Definition) error {
	stream, err := d.Stream()
	if err != nil {
		return err
	}
	return s.ports.Streams.RemoveSync(ctx, stream, d.ID.Cursor())
}
