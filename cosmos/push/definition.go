package push

import (
	"bytes"
	"context"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// readDefinition reads the document of a subscription, even if the subscription was deleted. It returns a
// not-found error if the document does not exist.
func (s *Store) readDefinition(ctx context.Context, c *client.Call, id domain.SubscriptionID) (*definitionDoc, error) {
	return s.readDefinitionOf(ctx, c, id.Cursor())
}

func (s *Store) readDefinitionOf(ctx context.Context, c *client.Call, cursor domain.CursorID) (*definitionDoc, error) {
	d := &definitionDoc{}
	etag, err := c.Read(ctx, s.cursors, cursor.String(), definitionID, d)
	d.etag = etag
	return d, err
}

// findDefinition returns the document of an existing subscription. It returns a NotFound error if the
// subscription does not exist or was deleted.
func (s *Store) findDefinition(ctx context.Context, c *client.Call, id domain.SubscriptionID) (*definitionDoc, error) {
	d, err := s.readDefinition(ctx, c, id)
	if client.IsNotFound(err) {
		gone, err := s.isGone(ctx, c, s.cursors, id.Cursor().String(), definitionID)
		if err == nil && !gone {
			err = client.ErrNotYetVisible
		}
		if err != nil {
			return nil, err
		}
		return nil, domain.Errorf(domain.NotFound, "there is no such subscription")
	}
	if err == nil && !d.isLive() {
		return d, domain.Errorf(domain.NotFound, "there is no such subscription")
	}
	return d, err
}

// readDefinitions returns the definition of each reservation, in the same order. A missing definition is
// nil.
func (s *Store) readDefinitions(ctx context.Context, c *client.Call, all []reservation) ([]*definitionDoc, error) {
	docs := make([]*definitionDoc, len(all))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, r := range all {
		g.Go(func() error {
			d, err := s.readDefinition(ctx, c, r.id)
			if client.IsNotFound(err) {
				return nil
			}
			docs[i] = d
			return err
		})
	}
	return docs, g.Wait()
}

// readOwner reads the document with the reservations of an owner. If the document is missing, readOwner
// returns an empty one.
func (s *Store) readOwner(ctx context.Context, c *client.Call, owner domain.ActorID) (*ownerDoc, error) {
	d := &ownerDoc{}
	etag, err := c.Read(ctx, s.cursors, ownerKey(owner), ownerID, d)
	d.etag = etag
	if client.IsNotFound(err) {
		d, err = &ownerDoc{ID: ownerID, PartitionKey: ownerKey(owner), Kind: ownerDocument.Name}, nil
	}
	return d, err
}

// writeOwner stores the reservations of an owner if the document has not changed since it was read. After
// an unknown outcome, the caller reads the document again and relies only on its content.
func (s *Store) writeOwner(ctx context.Context, c *client.Call, d *ownerDoc) error {
	d.Reserved = make([]string, len(d.reservations))
	for i, r := range d.reservations {
		d.Reserved[i] = r.String()
	}
	_, err := c.Put(ctx, s.cursors, d.PartitionKey, ownerID, d.etag, d)
	if client.IsRefused(err) {
		return client.ErrStale
	}
	return err
}

// ReplaceSubscription implements [repository.Definitions].
func (s *Store) ReplaceSubscription(ctx context.Context, d *repository.Definition) (repository.DefinitionVersion, error) {
	c := s.client.Begin("replace subscription")
	writeID := s.client.NewID()
	var version repository.DefinitionVersion
	misses := 0
	err := c.Retry(ctx, func() error {
		doc, err := s.findDefinition(ctx, c, d.ID)
		switch {
		case err != nil:
			return err
		case doc.Owner != d.Owner.String():
			return domain.Errorf(domain.NotFound, "there is no such subscription")
		case doc.WriteID == writeID:
			version = repository.DefinitionVersion(doc.etag)
			return nil
		case doc.etag != azcore.ETag(d.Version):
			return s.changedError(c, &misses)
		}
		doc.set(d, writeID)
		etag, err := s.replaceWatched(ctx, c, &watchedWrite{domain.SubscriptionResourceOf(d.Owner, d.ID), domain.ResourceUpdated, doc.etag, doc, &doc.watchedMark})
		if client.IsRefused(err) {
			return client.ErrStale
		}
		version = repository.DefinitionVersion(etag)
		return err
	})
	if err == nil {
		_ = s.noteChange(ctx, c, d.ID.Cursor()) // a failure has the same effect as a crash before this call
	}
	return version, c.Outcome("replace subscription "+d.ID.String(), err)
}

// changedError returns the error for a stored version that differs from the requested version. Where
// reads may be stale, it returns ErrStale for the first few times, so that the document is read again.
func (s *Store) changedError(c *client.Call, misses *int) error {
	*misses++
	switch {
	case !s.account.ReadsMayBeStale():
		return domain.Errorf(domain.Conflict, "it has changed")
	case *misses < client.MaxMissing:
		return client.ErrStale
	case c.InDoubt(): // an earlier attempt of the write may have been applied
		return domain.Errorf(domain.Uncertain, "it has changed, and it is unknown which write changed it")
	}
	return domain.Errorf(domain.Conflict, "it has changed")
}

// Subscription implements [repository.Definitions].
func (s *Store) Subscription(ctx context.Context, id domain.SubscriptionID) (*repository.Definition, error) {
	c := s.client.Begin("read subscription")
	var found *repository.Definition
	err := c.Retry(ctx, func() error {
		doc, err := s.findDefinition(ctx, c, id)
		if err == nil {
			found, err = doc.toDefinition()
		}
		return err
	})
	return found, c.Outcome("read subscription "+id.String(), err)
}

// CurrentSubscription implements [repository.Definitions].
func (s *Store) CurrentSubscription(ctx context.Context, id domain.SubscriptionID) (*repository.Definition, error) {
	c := s.client.Begin("read current subscription")
	var found *repository.Definition
	err := c.Retry(ctx, func() error {
		doc, err := s.findDefinition(ctx, c, id)
		if err == nil {
			err = s.confirmCurrent(ctx, c, definitionDocument, doc.PartitionKey, doc.ID, doc.WriteID)
		}
		if err == nil {
			found, err = doc.toDefinition()
		}
		return err
	})
	return found, c.Outcome("read current subscription "+id.String(), err)
}

// Subscriptions implements [repository.Definitions].
func (s *Store) Subscriptions(ctx context.Context, owner domain.ActorID) ([]*repository.Definition, error) {
	c := s.client.Begin("list subscriptions")
	var found []*repository.Definition
	err := c.Retry(ctx, func() error {
		list, err := s.readOwner(ctx, c, owner)
		if err != nil {
			return err
		}
		docs, err := s.readDefinitions(ctx, c, list.reservations)
		if err != nil {
			return err
		}
		found = nil
		for _, doc := range docs {
			if doc == nil || !doc.isLive() || doc.Owner != owner.String() {
				continue
			}
			d, err := doc.toDefinition()
			if err != nil {
				return err
			}
			found = append(found, d)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b *repository.Definition) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return found, c.Outcome("list the subscriptions of "+owner.String(), err)
}

// DeleteSubscription implements [repository.Definitions].
func (s *Store) DeleteSubscription(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, version repository.DefinitionVersion) error {
	c := s.client.Begin("delete subscription")
	writeID := s.client.NewID()
	misses := 0
	err := c.Retry(ctx, func() error {
		doc, err := s.readDefinition(ctx, c, id)
		switch {
		case client.IsNotFound(err):
			// The read may have been stale. Because the owner treats NotFound as a completed deletion,
			// NotFound must be certain.
			gone, err := s.isGone(ctx, c, s.cursors, id.Cursor().String(), definitionID)
			switch {
			case err != nil:
				return err
			case !gone:
				return client.ErrNotYetVisible
			}
			return domain.Errorf(domain.NotFound, "there is no such subscription")
		case err != nil:
			return err
		case doc.Owner != owner.String():
			if misses++; s.account.ReadsMayBeStale() && misses < client.MaxMissing {
				return client.ErrStale // the document may have been read before the owner created the subscription
			}
			return domain.Errorf(domain.NotFound, "there is no such subscription")
		case doc.WriteID == writeID:
			return nil
		case !doc.isLive():
			s.release(ctx, c, owner, id)
			_ = s.noteChange(ctx, c, id.Cursor()) // a failure has the same effect as a crash before this call
			return domain.Errorf(domain.NotFound, "there is no such subscription")
		case version != "" && doc.etag != azcore.ETag(version):
			return s.changedError(c, &misses)
		}
		// A crash after this write leaves a reservation without a subscription. When the owner reaches
		// the limit for reservations, the next creation frees this reservation.
		next := &definitionDoc{
			ID: definitionID, PartitionKey: doc.PartitionKey, Kind: definitionDocument.Name, WriteID: writeID,
			State: definitionDeleted, Owner: doc.Owner, watchedMark: doc.watchedMark, Document: doc.Document,
		}
		_, err = s.replaceWatched(ctx, c, &watchedWrite{domain.SubscriptionResourceOf(owner, id), domain.ResourceDeleted, doc.etag, next, &next.watchedMark})
		if client.IsRefused(err) {
			return client.ErrStale
		}
		return err
	})
	if err == nil {
		s.release(ctx, c, owner, id)
		_ = s.noteChange(ctx, c, id.Cursor()) // a failure has the same effect as a crash before this call
	}
	return c.Outcome("delete subscription "+id.String(), err)
}

// release removes the reservation of a deleted subscription. A failure has the same effect as a crash
// before this call.
func (s *Store) release(ctx context.Context, c *client.Call, owner domain.ActorID, id domain.SubscriptionID) {
	_ = c.Retry(ctx, func() error {
		list, err := s.readOwner(ctx, c, owner)
		if err != nil {
			return err
		}
		n := len(list.reservations)
		list.reservations = slices.DeleteFunc(list.reservations, func(r reservation) bool { return r.id == id })
		if len(list.reservations) == n {
			return nil
		}
		return s.writeOwner(ctx, c, list)
	})
}

// noteChange increments the number of changes in the shard entry of a cursor. The owner of the cursor
// reads this entry whenever it reads the shard, so it detects the change even without a signal. If a
// change is counted twice, the owner may needlessly look up the receiver of the cursor again.
func (s *Store) noteChange(ctx context.Context, c *client.Call, id domain.CursorID) error {
	return c.Retry(ctx, func() error {
		err := s.patchChanges(ctx, c, id)
		if client.IsNotFound(err) {
			return nil // without a cursor, there is no entry to update
		}
		return err
	})
}

// patchChanges increments the number of changes in the shard entry of a cursor.
func (s *Store) patchChanges(ctx context.Context, c *client.Call, id domain.CursorID) error {
	ops := client.NewPatch(entryDocument)
	ops.AppendIncrement("/changes", 1)
	// If the node crashes before this write, the owner of the cursor learns of the change from a signal,
	// or when it loads the cursor.
	return c.Patch(ctx, s.cursors, shardKey(repository.ShardOf(id)), id.String(), ops, &entryDoc{})
}
