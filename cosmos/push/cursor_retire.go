package push

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The retention of the documents of a retired cursor. The cursor outlives its dead letters, which were
// written before its retirement. The definition outlives the cursor, so that the id of a subscription is
// not used again while a document of its cursor exists.
const (
	retiredCursor     = repository.DeadLetterRetention + repository.DeadLetterRetention/14
	retiredDefinition = retiredCursor + repository.DeadLetterRetention/14
)

// Retire implements [repository.Cursors].
func (s *Store) Retire(ctx context.Context, id domain.CursorID, version repository.CursorVersion) error {
	c := s.client.Begin("retire cursor")
	err := c.Retry(ctx, func() error {
		doc, err := s.readCursor(ctx, c, id)
		switch {
		case client.IsNotFound(err):
			return domain.Errorf(domain.NotFound, "there is no such cursor")
		case err != nil:
			return err
		case doc.Retired:
			return s.unlist(ctx, c, doc)
		case doc.etag != azcore.ETag(version):
			return domain.Errorf(domain.Conflict, "the cursor has changed since it was loaded")
		case doc.State != stateNames[domain.Closed] || len(doc.Open)+len(doc.Held)+doc.Retries > 0:
			return domain.Errorf(domain.Conflict, "the cursor is not closed, or has deliveries")
		}
		definition, err := s.readDefinitionOf(ctx, c, id)
		switch {
		case client.IsNotFound(err):
			definition = nil
		case err != nil:
			return err
		case definition.State != definitionDeleted:
			return client.ErrStale
		}
		doc.WriteID, doc.Retired, doc.TTL = s.client.NewID(), true, ceilSeconds(retiredCursor)
		// If the node crashes before this write, the cursor is closed, and its next owner retires it. A
		// crash after this write leaves an entry in the shard, which the next load of the cursor removes.
		_, err = c.Batch(ctx, s.cursors, doc.PartitionKey, false, func(b *azcosmos.TransactionalBatch) {
			putInBatch(b, cursorID, doc.etag, doc)
			if definition != nil {
				definition.TTL = ceilSeconds(retiredDefinition)
				putInBatch(b, definitionID, definition.etag, definition)
			}
		})
		switch {
		case client.IsRefused(err):
			return client.ErrStale
		case err != nil:
			return err
		}
		return s.unlist(ctx, c, doc)
	})
	return c.Outcome("retire cursor "+id.String(), err)
}

// unlist removes the entry of a retired cursor from its shard. If the cursor belongs to a watch, unlist
// also removes the cursor from its watch page.
func (s *Store) unlist(ctx context.Context, c *client.Call, retired *cursorDoc) error {
	var p documentParser
	id, stream := parse(&p, retired.PartitionKey, domain.ParseCursorID), parse(&p, retired.Stream, domain.ParseStreamName)
	switch {
	case p.err != nil:
		return domain.Errorf(domain.Damaged, "cursor %s: %w", retired.PartitionKey, p.err)
	case isWatch(id):
		if err := s.removeFromPage(ctx, c, id, stream); err != nil {
			return err
		}
	}
	return c.DeleteIfExists(ctx, s.cursors, shardKey(repository.ShardOf(id)), id.String())
}

// unlistExpired removes the shard entry of a missing cursor if the cursor was retired and has expired. It
// retains the entry of a cursor that is being created: the definition of the cursor is stored before its
// entry, and Create changes the etag of an existing entry. A watch that is being created needs no entry.
func (s *Store) unlistExpired(ctx context.Context, c *client.Call, id domain.CursorID) error {
	isSubscription := strings.HasPrefix(id.String(), "s|")
	if !isSubscription && !isWatch(id) {
		return nil
	}
	entry, err := s.readEntry(ctx, c, id)
	if domain.KindOf(err) == domain.NotFound || err == nil && !isSubscription && !entry.IsPaged {
		return nil
	}
	if err != nil {
		return err
	}
	// The cursor is read after the entry. If Create changes the entry between these reads, the delete
	// below is refused. If Create changed the entry earlier, the definition exists.
	if _, err = s.readCursor(ctx, c, id); !client.IsNotFound(err) {
		if err == nil {
			err = client.ErrStale
		}
		return err
	}
	if isGone, err := s.isGone(ctx, c, s.cursors, id.String(), cursorID); err != nil || !isGone {
		return err
	}
	if isSubscription {
		if isGone, err := s.isDefinitionGone(ctx, c, id); err != nil || !isGone {
			return err
		}
	}
	// A crash before this write leaves an entry without a cursor. The next owner of the shard tries to
	// load the missing cursor.
	err = c.Delete(ctx, s.cursors, entry.PartitionKey, entry.ID, entry.etag)
	if client.IsRefused(err) || client.IsNotFound(err) {
		return nil
	}
	return err
}

// isDefinitionGone reports whether the definition of a retired cursor has expired, or was deleted and has
// a TTL.
func (s *Store) isDefinitionGone(ctx context.Context, c *client.Call, id domain.CursorID) (bool, error) {
	definition, err := s.readDefinitionOf(ctx, c, id)
	if client.IsNotFound(err) {
		return s.isGone(ctx, c, s.cursors, id.String(), definitionID)
	}
	return err == nil && definition.State == definitionDeleted && definition.TTL > 0, err
}
