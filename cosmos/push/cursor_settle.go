package push

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Settle implements [repository.Cursors].
func (s *Store) Settle(ctx context.Context, id domain.CursorID, version repository.CursorVersion, t domain.Settlement) (repository.CursorVersion, error) {
	c := s.client.Begin("settle")
	writeID := s.client.NewID()
	var settled repository.CursorVersion
	err := c.Retry(ctx, func() (err error) {
		settled, err = s.writeCursor(ctx, c, id, version, &t, writeID)
		if !client.IsRefused(err) {
			return err
		}
		inRetry := client.FailureOf(err).Operation() > 0
		doc, err := s.readCursor(ctx, c, id)
		switch {
		case client.IsNotFound(err):
			return domain.Errorf(domain.NotFound, "there is no such cursor")
		case err != nil:
			return err
		case doc.WriteID == writeID:
			settled = repository.CursorVersion(doc.etag)
			return nil
		case doc.etag == azcore.ETag(version) && !inRetry: // either the read is stale, or the refusal was spurious
			return client.ErrStale
		}
		return domain.Errorf(domain.Conflict, "the cursor has changed since it was loaded")
	})
	return settled, c.Outcome("settle cursor "+id.String(), err)
}

// writeCursor stores a settlement if the cursor still has the given version. If t.List is set, it first
// lowers the due time in the shard entry. If t.Unlist is set, it removes the entry after the write.
func (s *Store) writeCursor(ctx context.Context, c *client.Call, id domain.CursorID, version repository.CursorVersion, t *domain.Settlement, writeID string) (repository.CursorVersion, error) {
	if !t.Unlist {
		return s.putCursor(ctx, c, id, version, t, writeID)
	}
	// The entry is read before the cursor is written. If a later owner lists the cursor between this read
	// and the delete below, that owner changes the entry, and the delete is refused.
	entry, err := s.readEntry(ctx, c, id)
	if err != nil && domain.KindOf(err) != domain.NotFound {
		return "", err
	}
	isListed := err == nil
	if isListed && !entry.IsPaged { // an older version of the hub has listed the cursor in its shard, not in a watch page
		if err := s.addToPage(ctx, c, id, &t.Standing); err != nil {
			return "", err
		}
	}
	etag, err := s.putCursor(ctx, c, id, version, t, writeID)
	if err == nil && isListed && entry.Changes == t.Changes { // if the numbers differ, the entry counts a change that the owner has not applied
		// If this delete fails, or the node crashes before it, the next owner removes the entry.
		_ = c.Delete(ctx, s.cursors, entry.PartitionKey, entry.ID, entry.etag)
	}
	return etag, err
}

// putCursor stores a settlement as writeCursor does, but does not remove the shard entry of the cursor.
func (s *Store) putCursor(ctx context.Context, c *client.Call, id domain.CursorID, version repository.CursorVersion, t *domain.Settlement, writeID string) (repository.CursorVersion, error) {
	if t.List {
		if err := s.list(ctx, c, id, t.Standing.Stream, t.Standing.Listed); err != nil {
			return "", err
		}
	}
	doc := makeCursorDoc(id, &t.Standing, writeID)
	// A crash before this write loses the results in t, so their calls are repeated. A crash after this
	// write needs no repair.
	if len(t.Create)+len(t.Replace)+len(t.Put)+len(t.Delete) == 0 {
		etag, err := c.Put(ctx, s.cursors, doc.PartitionKey, cursorID, azcore.ETag(version), doc)
		return repository.CursorVersion(etag), err
	}
	dead := ceilSeconds(repository.DeadLetterRetention)
	results, err := c.Batch(ctx, s.cursors, doc.PartitionKey, false, func(b *azcosmos.TransactionalBatch) {
		putInBatch(b, cursorID, azcore.ETag(version), doc)
		for i := range t.Create {
			putInBatch(b, "", "", makeRetryDoc(id, &t.Create[i], dead))
		}
		// The etag of the cursor also protects its retries: every write of a retry replaces the cursor in
		// the same batch.
		for i := range t.Replace {
			d := makeRetryDoc(id, &t.Replace[i], dead)
			b.ReplaceItem(d.ID, client.Encode(d), nil)
		}
		for i := range t.Put { // t.Put may replace a dead letter that has expired, so these documents are upserted
			b.UpsertItem(client.Encode(makeRetryDoc(id, &t.Put[i], dead)), nil)
		}
		for _, e := range t.Delete {
			b.DeleteItem(retryID(e), nil)
		}
	})
	if err != nil {
		return "", err
	}
	return repository.CursorVersion(results[0].ETag), nil
}

// list lowers the due time in the shard entry of a cursor. The due time never increases, so a former
// owner of the cursor cannot delay its retries.
func (s *Store) list(ctx context.Context, c *client.Call, id domain.CursorID, stream domain.StreamName, due time.Time) error {
	key := shardKey(repository.ShardOf(id))
	ops := client.NewPatch(entryDocument, fmt.Sprintf("(NOT IS_DEFINED(c.due) OR c.due > %d)", toMicros(due)))
	ops.AppendSet("/due", toMicros(due))
	return c.Retry(ctx, func() error {
		// A crash after this write leaves an entry that is due too early: a node loads the cursor and
		// finds no due retry.
		err := c.Patch(ctx, s.cursors, key, id.String(), ops, &entryDoc{})
		switch {
		case client.StatusOf(err) == http.StatusPreconditionFailed:
			var now entryDoc
			_, err = c.Read(ctx, s.cursors, key, id.String(), &now)
			switch {
			case err == nil && (now.Due == 0 || now.Due > toMicros(due)):
				err = client.ErrStale
			case err == nil && now.IsPaged: // an earlier owner may be about to remove the entry
				err = s.keepEntry(ctx, c, &now)
			}
			return err
		case client.IsNotFound(err): // the cursor belongs to a watch, or the entry was deleted manually
			d := &entryDoc{ID: id.String(), PartitionKey: key, Kind: entryDocument.Name, Stream: stream.String(), Due: toMicros(due), IsPaged: isWatch(id)}
			if _, err = c.Put(ctx, s.cursors, key, d.ID, "", d); client.IsRefused(err) {
				err = client.ErrStale
			}
		}
		return err
	})
}
