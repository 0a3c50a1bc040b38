package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Create implements [repository.Cursors].
func (s *Store) Create(ctx context.Context, id domain.CursorID, standing domain.Standing) error {
	c := s.client.Begin("create cursor")
	entry := &entryDoc{ID: id.String(), PartitionKey: shardKey(repository.ShardOf(id)), Kind: entryDocument.Name, Stream: standing.Stream.String()}
	doc := makeCursorDoc(id, &standing, s.client.NewID())
	err := c.Retry(ctx, func() error {
		// A crash after this write leaves an entry without a cursor, which readers skip and a
		// repeated Create uses. If it is refused, the entry is there.
		if _, err := c.Put(ctx, s.cursors, entry.PartitionKey, entry.ID, "", entry); err != nil && !client.IsRefused(err) {
			return err
		}
		// A crash after this write leaves a cursor that its caller does not know of.
		_, err := c.Put(ctx, s.cursors, doc.PartitionKey, cursorID, "", doc)
		if !client.IsRefused(err) {
			return err
		}
		stored, err := s.readCursor(ctx, c, id)
		switch {
		case client.IsNotFound(err):
			return client.ErrNotYetVisible
		case err == nil && stored.WriteID != doc.WriteID:
			return domain.Errorf(domain.Conflict, "the cursor exists")
		}
		return err
	})
	return c.Outcome("create cursor "+id.String(), err)
}

func (s *Store) readCursor(ctx context.Context, c *client.Call, id domain.CursorID) (*cursorDoc, error) {
	d := &cursorDoc{}
	etag, err := c.Read(ctx, s.cursors, id.String(), cursorID, d)
	d.etag = etag
	return d, err
}

// Load implements [repository.Cursors].
func (s *Store) Load(ctx context.Context, id domain.CursorID, owner domain.Owner, clock func() time.Time) (*domain.Cursor, repository.CursorVersion, error) {
	c := s.client.Begin("load cursor")
	var cursor *domain.Cursor
	var version repository.CursorVersion
	err := c.Retry(ctx, func() error {
		doc, err := s.readCursor(ctx, c, id)
		if client.IsNotFound(err) {
			return domain.Errorf(domain.NotFound, "there is no such cursor")
		}
		if err != nil {
			return err
		}
		standing, err := doc.standing()
		if err != nil {
			return err
		}
		var retries []domain.Retry
		if doc.Retries > 0 {
			if retries, err = s.readRetries(ctx, c, id, retryDocument, domain.EntryID{Number: -1}, 0); err != nil {
				return err
			}
		}
		cursor, err = domain.OpenCursor(standing, retries, owner, clock())
		if errors.Is(err, domain.ErrIncomplete) {
			// The retries were read before the cursor was settled, or after that.
			return client.ErrNotYetVisible
		}
		if err != nil {
			return err
		}
		proof := cursor.Settlement()
		if !s.account.ReadsMayBeStale() && standing.By == owner.Incarnation && !standing.Released {
			cursor.Stored()
			version = repository.CursorVersion(doc.etag)
			return nil
		}
		// A crash after this write leaves a proved cursor. If it is refused, the cursor is read
		// again and proved again: then it does not matter which attempt has succeeded.
		version, err = s.writeCursor(ctx, c, id, repository.CursorVersion(doc.etag), &proof, s.client.NewID())
		if client.IsRefused(err) {
			return client.ErrStale
		}
		if err == nil {
			cursor.Stored()
		}
		return err
	})
	return cursor, version, c.Outcome("load cursor "+id.String(), err)
}

// Standing implements [repository.Cursors].
func (s *Store) Standing(ctx context.Context, id domain.CursorID) (domain.Standing, error) {
	c := s.client.Begin("read cursor")
	doc, err := s.readCursor(ctx, c, id)
	if client.IsNotFound(err) {
		err = domain.Errorf(domain.NotFound, "there is no such cursor")
	}
	var standing domain.Standing
	if err == nil {
		standing, err = doc.standing()
	}
	return standing, c.Outcome("read cursor "+id.String(), err)
}

// Cursors implements [repository.Shards].
func (s *Store) Cursors(ctx context.Context, shard int) ([]repository.ShardEntry, error) {
	c := s.client.Begin("read shard")
	docs, err := client.All[entryDoc](ctx, c.Query(s.cursors, shardKey(shard), "SELECT * FROM c"))
	entries := make([]repository.ShardEntry, 0, len(docs))
	for _, d := range docs {
		var p parser
		entry := repository.ShardEntry{
			Cursor: parse(&p, d.ID, domain.ParseCursorID), Stream: parse(&p, d.Stream, domain.ParseStreamName), Due: fromMicros(d.Due),
		}
		if p.err != nil {
			err = cmp.Or(err, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err))
			continue
		}
		entries = append(entries, entry)
	}
	return entries, c.Outcome(fmt.Sprintf("read shard %d", shard), err)
}
