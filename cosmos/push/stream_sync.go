package push

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// AddSync implements [repository.Streams].
func (s *Store) AddSync(ctx context.Context, stream domain.StreamName, id domain.CursorID) error {
	return s.changeSync(ctx, "add sync", stream, func(listed []domain.CursorID) []domain.CursorID {
		if slices.Contains(listed, id) {
			return listed
		}
		return append(slices.Clip(listed), id)
	})
}

// RemoveSync implements [repository.Streams].
func (s *Store) RemoveSync(ctx context.Context, stream domain.StreamName, id domain.CursorID) error {
	return s.changeSync(ctx, "remove sync", stream, func(listed []domain.CursorID) []domain.CursorID {
		return slices.DeleteFunc(slices.Clone(listed), func(l domain.CursorID) bool { return l == id })
	})
}

// Sync implements [repository.Streams].
func (s *Store) Sync(ctx context.Context, stream domain.StreamName) ([]domain.CursorID, error) {
	c := s.client.Begin("read sync")
	var listed []domain.CursorID
	err := c.Retry(ctx, func() error {
		h, err := s.lastHead(ctx, c, stream)
		if err == nil && h != nil {
			listed = h.sync
		}
		return err
	})
	return listed, c.Outcome("read sync of "+stream.String(), err)
}

// changeSync replaces the list of sync cursors in the head of a stream. An append that begins later uses
// the new list, because each append replaces the head on condition of its etag. After an unknown outcome,
// changeSync reads the head again and relies only on its list.
func (s *Store) changeSync(ctx context.Context, what string, stream domain.StreamName, change func([]domain.CursorID) []domain.CursorID) error {
	c := s.client.Begin(what)
	err := c.Retry(ctx, func() error {
		h, err := s.currentHead(ctx, c, stream)
		for err == nil && h.Sealed {
			h, err = s.openSegment(ctx, c, stream, h)
		}
		if err != nil {
			return err
		}
		next := change(h.sync)
		if slices.Equal(next, h.sync) && !s.account.ReadsMayBeStale() {
			return nil // where reads may be stale, only a write can confirm that the head is current
		}
		h.sync, h.Sync, h.WriteID = next, nil, s.client.NewID()
		for _, id := range next {
			h.Sync = append(h.Sync, id.String())
		}
		// If the node crashes after this write, the changed list is stored.
		_, err = c.Put(ctx, s.streams, h.PartitionKey, headID, h.etag, h)
		if client.IsRefused(err) {
			return client.ErrStale
		}
		return err
	})
	return c.Outcome(what+" of "+stream.String(), err)
}
