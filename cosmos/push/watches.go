package push

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// CreateWatch implements [repository.Watches].
func (s *Store) CreateWatch(ctx context.Context, w *repository.Watch) error {
	c := s.client.Begin("create watch")
	doc := &watchDoc{}
	doc.set(w, s.client.NewID())
	err := c.Retry(ctx, func() error {
		// If the node crashes after this write, the owner does not know the id of the watch, but can list
		// its watches.
		_, err := c.Put(ctx, s.cursors, doc.PartitionKey, doc.ID, "", doc)
		if !client.IsRefused(err) {
			return err
		}
		stored, err := s.readWatch(ctx, c, w.Owner, w.ID)
		switch {
		case client.IsNotFound(err):
			return client.ErrNotYetVisible
		case err != nil:
			return err
		case stored.WriteID != doc.WriteID && !stored.isSame(doc):
			return domain.Errorf(domain.Conflict, "the owner has another watch with this id")
		}
		return nil
	})
	return c.Outcome("create watch "+w.ID.String(), err)
}

// isSame reports whether d and wanted describe the same watch. It lets a repeated creation recognize the
// watch that it created earlier.
func (d *watchDoc) isSame(wanted *watchDoc) bool {
	return d.Resource == wanted.Resource && d.CallbackURL == wanted.CallbackURL && d.After == wanted.After && d.Created == wanted.Created
}

func (s *Store) readWatch(ctx context.Context, c *client.Call, owner domain.ActorID, id domain.WatchID) (*watchDoc, error) {
	d := &watchDoc{}
	_, err := c.Read(ctx, s.cursors, watchesKey(owner), id.String(), d)
	return d, err
}

// findWatch reads a watch. It returns a NotFound error if the owner has no watch with this id.
func (s *Store) findWatch(ctx context.Context, c *client.Call, owner domain.ActorID, id domain.WatchID) (*watchDoc, error) {
	d, err := s.readWatch(ctx, c, owner, id)
	if !client.IsNotFound(err) {
		return d, err
	}
	isGone, err := s.isGone(ctx, c, s.cursors, watchesKey(owner), id.String())
	if err == nil && !isGone {
		err = client.ErrNotYetVisible
	}
	if err != nil {
		return nil, err
	}
	return nil, domain.Errorf(domain.NotFound, "there is no such watch")
}

// ReplaceWatch implements [repository.Watches].
func (s *Store) ReplaceWatch(ctx context.Context, w *repository.Watch) error {
	c := s.client.Begin("replace watch")
	writeID := s.client.NewID()
	misses := 0
	err := c.Retry(ctx, func() error {
		doc, err := s.findWatch(ctx, c, w.Owner, w.ID)
		switch {
		case err != nil:
			return err
		case doc.WriteID == writeID:
			return nil
		case doc.ETag != azcore.ETag(w.Version):
			return s.changedError(c, &misses)
		}
		etag := doc.ETag
		doc.set(w, writeID)
		// If the node crashes after this write, the owner of the cursor detects the change only when it
		// loads the cursor.
		_, err = c.Put(ctx, s.cursors, doc.PartitionKey, doc.ID, etag, doc)
		if client.IsRefused(err) {
			return client.ErrStale
		}
		return err
	})
	if err == nil {
		err = s.noteWatchChange(ctx, c, w.ID.Cursor(w.Owner), w.Resource.Key())
	}
	return c.Outcome("replace watch "+w.ID.String(), err)
}

// Watch implements [repository.Watches].
func (s *Store) Watch(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*repository.Watch, error) {
	c := s.client.Begin("read watch")
	var found *repository.Watch
	err := c.Retry(ctx, func() error {
		doc, err := s.findWatch(ctx, c, owner, id)
		if err == nil {
			found, err = doc.toWatch()
		}
		return err
	})
	return found, c.Outcome("read watch "+id.String(), err)
}

// CurrentWatch implements [repository.Watches].
func (s *Store) CurrentWatch(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*repository.Watch, error) {
	c := s.client.Begin("read current watch")
	var found *repository.Watch
	err := c.Retry(ctx, func() error {
		doc, err := s.findWatch(ctx, c, owner, id)
		if err == nil {
			err = s.confirmCurrent(ctx, c, watchDocument, doc.PartitionKey, doc.ID, doc.WriteID)
		}
		if err == nil {
			found, err = doc.toWatch()
		}
		return err
	})
	return found, c.Outcome("read current watch "+id.String(), err)
}

// Watches implements [repository.Watches].
func (s *Store) Watches(ctx context.Context, owner domain.ActorID, offset, limit int) ([]*repository.Watch, error) {
	if limit <= 0 {
		return nil, nil
	}
	c := s.client.Begin("list watches")
	docs, err := client.All[watchDoc](ctx, c.Query(s.cursors, watchesKey(owner),
		fmt.Sprintf("SELECT * FROM c ORDER BY c.id OFFSET %d LIMIT %d", offset, limit)))
	found := make([]*repository.Watch, 0, len(docs))
	for i := range docs {
		if err != nil {
			break
		}
		var w *repository.Watch
		if w, err = docs[i].toWatch(); err == nil {
			found = append(found, w)
		}
	}
	return found, c.Outcome("list the watches of "+owner.String(), err)
}

// DeleteWatch implements [repository.Watches].
func (s *Store) DeleteWatch(ctx context.Context, owner domain.ActorID, id domain.WatchID) error {
	c := s.client.Begin("delete watch")
	var resource string
	err := c.Retry(ctx, func() error {
		doc, err := s.findWatch(ctx, c, owner, id)
		if domain.KindOf(err) == domain.NotFound && c.InDoubt() {
			return nil // the watch was deleted by an earlier attempt of this call, or by another request
		}
		if err != nil {
			return err
		}
		resource = doc.Resource
		// A crash after this write leaves a cursor without a shard entry. A repeated request, or the next
		// change of the resource, makes the owner load and retire the cursor.
		err = c.Delete(ctx, s.cursors, doc.PartitionKey, doc.ID, doc.ETag)
		if client.IsRefused(err) || client.IsNotFound(err) {
			return client.ErrStale
		}
		return err
	})
	cursor := id.Cursor(owner)
	var failure error
	switch {
	case err == nil && resource != "":
		failure = s.noteWatchChange(ctx, c, cursor, resource)
	case err == nil || domain.KindOf(err) == domain.NotFound:
		failure = s.noteEarlierDeletion(ctx, c, cursor)
	}
	if failure != nil {
		err = failure
	}
	return c.Outcome("delete watch "+id.String(), err)
}

// noteWatchChange notes the change or deletion of a watch in the shard entry of its cursor. It creates a
// missing entry, so that the owner of the shard loads the cursor.
func (s *Store) noteWatchChange(ctx context.Context, c *client.Call, id domain.CursorID, resource string) error {
	r, err := domain.ParseResourceKey(resource)
	if err != nil {
		return err
	}
	return s.listWatch(ctx, c, id, r.Stream())
}

// noteEarlierDeletion notes the deletion of a watch by an earlier call, which may have crashed before it
// noted the deletion. The stream of the watch is read from its cursor, because the watch no longer
// exists.
func (s *Store) noteEarlierDeletion(ctx context.Context, c *client.Call, id domain.CursorID) error {
	return c.Retry(ctx, func() error {
		doc, err := s.readCursor(ctx, c, id)
		if client.IsNotFound(err) {
			isGone, err := s.isGone(ctx, c, s.cursors, id.String(), cursorID)
			if err == nil && !isGone {
				err = client.ErrNotYetVisible
			}
			return err
		}
		if err != nil || doc.Retired {
			return err
		}
		var p documentParser
		stream := parse(&p, doc.Stream, domain.ParseStreamName)
		if p.err != nil {
			return domain.Errorf(domain.Damaged, "cursor %s: %w", id, p.err)
		}
		return s.listWatch(ctx, c, id, stream)
	})
}

// listWatch creates the shard entry of the cursor of a watch, or changes the existing entry.
func (s *Store) listWatch(ctx context.Context, c *client.Call, id domain.CursorID, stream domain.StreamName) error {
	entry := &entryDoc{
		ID: id.String(), PartitionKey: shardKey(repository.ShardOf(id)), Kind: entryDocument.Name,
		Stream: stream.String(), Changes: toMicros(s.opts.Clock()), IsPaged: true, // as the number of changes, the time is greater than the number in any earlier entry
	}
	return c.Retry(ctx, func() error {
		// If the node crashes before this write, the next load of the cursor detects the change, or a
		// repeated call notes it in the entry.
		_, err := c.Put(ctx, s.cursors, entry.PartitionKey, entry.ID, "", entry)
		if !client.IsRefused(err) {
			return err
		}
		if err = s.patchChanges(ctx, c, id); client.IsNotFound(err) {
			return client.ErrStale // the entry was removed between the two writes
		}
		return err
	})
}
