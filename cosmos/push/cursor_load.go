package push

import (
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
		var err error
		if isWatch(id) {
			err = s.addToPage(ctx, c, id, &standing)
		} else {
			err = s.addEntry(ctx, c, id, entry, doc.WriteID)
		}
		if err != nil {
			return err
		}
		// If the node crashes after this write, the cursor exists, although the caller received no
		// confirmation.
		_, err = c.Put(ctx, s.cursors, doc.PartitionKey, cursorID, "", doc)
		if !client.IsRefused(err) {
			return err
		}
		if err = s.compareCursor(ctx, c, id, doc.WriteID); client.IsNotFound(err) {
			return client.ErrNotYetVisible
		}
		return err
	})
	return c.Outcome("create cursor "+id.String(), err)
}

// addEntry creates the shard entry of a cursor before the cursor is created.
func (s *Store) addEntry(ctx context.Context, c *client.Call, id domain.CursorID, entry *entryDoc, writeID string) error {
	// A crash after this write leaves an entry without a cursor. Readers skip the entry, and a repeated
	// Create uses it.
	_, err := c.Put(ctx, s.cursors, entry.PartitionKey, entry.ID, "", entry)
	if client.IsRefused(err) { // the entry exists already
		if err = s.compareCursor(ctx, c, id, writeID); client.IsNotFound(err) {
			err = s.keepEntry(ctx, c, entry)
		}
	}
	return err
}

// compareCursor returns nil if the write with writeID created the cursor, a Conflict error if another
// write did, and a not-found error if the cursor does not exist.
func (s *Store) compareCursor(ctx context.Context, c *client.Call, id domain.CursorID, writeID string) error {
	stored, err := s.readCursor(ctx, c, id)
	if err == nil && stored.WriteID != writeID {
		return domain.Errorf(domain.Conflict, "the cursor exists")
	}
	return err
}

// keepEntry changes the etag of a shard entry, because its cursor is about to be created or listed. If
// another node is about to delete the entry under the old etag, its delete is refused.
func (s *Store) keepEntry(ctx context.Context, c *client.Call, entry *entryDoc) error {
	ops := client.NewPatch(entryDocument)
	ops.AppendSet("/stream", entry.Stream)
	err := c.Patch(ctx, s.cursors, entry.PartitionKey, entry.ID, ops, &entryDoc{})
	if client.IsNotFound(err) {
		return client.ErrStale
	}
	return err
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
		if isMissing := client.IsNotFound(err); isMissing || err == nil && doc.Retired {
			if isMissing {
				err = s.unlistExpired(ctx, c, id)
			} else {
				err = s.unlist(ctx, c, doc)
			}
			if err == nil {
				err = domain.Errorf(domain.NotFound, "there is no such cursor")
			}
		}
		if err != nil {
			return err
		}
		standing, err := doc.toStanding()
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
			// The cursor does not match its retries: either a settlement was stored between the reads, or
			// one read was stale.
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
		// A crash after this write leaves a cursor that names the new owner. If the write is refused,
		// Load reads the cursor and writes it again, even if an earlier attempt of the write has
		// succeeded.
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
		standing, err = doc.toStanding()
	}
	return standing, c.Outcome("read cursor "+id.String(), err)
}

// Cursors implements [repository.Shards].
func (s *Store) Cursors(ctx context.Context, shard int) ([]repository.ShardEntry, []repository.WatchedStream, error) {
	c := s.client.Begin("read shard")
	docs, unreadable, err := client.AllReadable[entryDoc](ctx, c.Query(s.cursors, shardKey(shard), "SELECT * FROM c"))
	entries := make([]repository.ShardEntry, 0, len(docs))
	var watched []repository.WatchedStream
	for _, d := range docs {
		var damage error
		if d.Kind == watchedDocument.Name {
			var stream repository.WatchedStream
			if stream, damage = d.watchedStream(); damage == nil {
				watched = append(watched, stream)
			}
		} else {
			var entry repository.ShardEntry
			if entry, damage = d.entry(); damage == nil {
				entries = append(entries, entry)
			}
		}
		if damage != nil {
			unreadable = append(unreadable, client.Unreadable{ID: d.ID, Err: damage})
		}
	}
	for _, u := range unreadable {
		if err == nil || domain.KindOf(err) == domain.NewerFormat { // an error about damage takes precedence over an error about a newer format
			err = u.Err
		}
	}
	return entries, watched, c.Outcome(fmt.Sprintf("read shard %d", shard), err)
}
