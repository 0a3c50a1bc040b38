package push

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func isWatch(id domain.CursorID) bool {
	_, _, is := domain.WatchOf(id)
	return is
}

// addToPage adds the cursor of a watch to the last watch page of its stream, and lists the stream in the
// shard. The page may already list the cursor, if an earlier call crashed before it created the document
// of the cursor. Another node may then be about to mark the page as served, because it found no document.
// So addToPage always stores a new version of the page.
func (s *Store) addToPage(ctx context.Context, c *client.Call, id domain.CursorID, standing *domain.Standing) error {
	shard, stream, from := repository.ShardOf(id), standing.Stream, standing.Position(0).Number
	watched, etag, err := s.readWatched(ctx, c, shard, stream)
	if err != nil {
		return err
	}
	page, pageTag, err := s.findWatchPage(ctx, c, watched, max(watched.Pages, 1)-1)
	if err == nil && len(page.Cursors) >= repository.WatchPageSize && !slices.Contains(page.Cursors, id.String()) {
		// If the node crashes after this write, the number of pages includes a missing page, which the
		// next new watch creates.
		watched.Pages++
		if etag, err = c.Put(ctx, s.cursors, watched.PartitionKey, watched.ID, etag, watched); err == nil {
			page, pageTag, err = s.findWatchPage(ctx, c, watched, watched.Pages-1)
		}
	}
	if err == nil {
		if pageTag == "" {
			page.Served = from
		}
		if !slices.Contains(page.Cursors, id.String()) {
			page.Cursors = append(page.Cursors, id.String())
		}
		page.Served, page.WriteID = min(page.Served, from), s.client.NewID()
		// A crash after this write leaves a page that lists a missing cursor. A repeated call creates
		// this cursor.
		_, err = c.Put(ctx, s.cursors, page.PartitionKey, page.ID, pageTag, page)
	}
	if err == nil && (etag == "" || len(page.Cursors) == 1) {
		// A concurrent removeFromPage may have deleted the previous page and may be about to delete the
		// shard's document. This write creates the document or changes its etag, so the delete is refused.
		watched.Pages = max(watched.Pages, 1)
		_, err = c.Put(ctx, s.cursors, watched.PartitionKey, watched.ID, etag, watched)
	}
	return staleIfRefused(err)
}

// readWatched returns the document with which a shard lists a stream with watches. If the document does
// not exist, readWatched returns a new one with 0 pages and no etag.
func (s *Store) readWatched(ctx context.Context, c *client.Call, shard int, stream domain.StreamName) (*entryDoc, azcore.ETag, error) {
	watched := &entryDoc{}
	etag, err := c.Read(ctx, s.cursors, shardKey(shard), watchedID(stream), watched)
	if client.IsNotFound(err) {
		return &entryDoc{ID: watchedID(stream), PartitionKey: shardKey(shard), Kind: watchedDocument.Name, Stream: stream.String()}, "", nil
	}
	return watched, etag, err
}

// findWatchPage returns a watch page. If the page is missing, it returns an empty page without an etag.
func (s *Store) findWatchPage(ctx context.Context, c *client.Call, watched *entryDoc, n int) (*watchPageDoc, azcore.ETag, error) {
	page, key := &watchPageDoc{}, watchPagesKey(watched.PartitionKey, watched.Stream)
	etag, err := c.Read(ctx, s.cursors, key, watchPageID(n), page)
	if client.IsNotFound(err) {
		return &watchPageDoc{ID: watchPageID(n), PartitionKey: key, Kind: watchPageDocument.Name}, "", nil
	}
	return page, etag, err
}

// removeFromPage removes the cursor of a watch from the watch pages of its stream. If the last page
// becomes empty and no other page exists, removeFromPage also removes the stream from the shard.
func (s *Store) removeFromPage(ctx context.Context, c *client.Call, id domain.CursorID, stream domain.StreamName) error {
	watched, etag, err := s.readWatched(ctx, c, repository.ShardOf(id), stream)
	if err != nil {
		return err
	}
	for n := range watched.Pages {
		page, pageTag, err := s.findWatchPage(ctx, c, watched, n)
		if err != nil {
			return err
		}
		i := slices.Index(page.Cursors, id.String())
		switch {
		case i < 0:
			continue
		case watched.Pages == 1 && len(page.Cursors) == 1:
			// If the node crashes between these writes, the shard lists a stream without a watch page.
			// Nodes then search for the missing page from time to time.
			if err = c.Delete(ctx, s.cursors, page.PartitionKey, page.ID, pageTag); err == nil {
				err = c.Delete(ctx, s.cursors, watched.PartitionKey, watched.ID, etag)
			}
			if client.IsNotFound(err) {
				err = nil
			}
		default:
			page.Cursors, page.WriteID = slices.Delete(page.Cursors, i, i+1), s.client.NewID()
			// If the node crashes before this write, the page lists a retired cursor, which the next load
			// of the cursor removes.
			_, err = c.Put(ctx, s.cursors, page.PartitionKey, page.ID, pageTag, page)
		}
		if err != nil {
			return staleIfRefused(err)
		}
	}
	return nil
}

// WatchPage implements [repository.WatchPages].
func (s *Store) WatchPage(ctx context.Context, shard int, stream domain.StreamName, page int) (repository.WatchPage, error) {
	c := s.client.Begin("read watch page")
	var found repository.WatchPage
	doc, err := s.readWatchPage(ctx, c, shard, stream, page)
	if err == nil {
		found, err = doc.toWatchPage()
	}
	return found, c.Outcome(fmt.Sprintf("read page %d of the watches of %s in shard %d", page, stream, shard), err)
}

func (s *Store) readWatchPage(ctx context.Context, c *client.Call, shard int, stream domain.StreamName, page int) (*watchPageDoc, error) {
	doc := &watchPageDoc{}
	_, err := c.Read(ctx, s.cursors, watchPagesKey(shardKey(shard), stream.String()), watchPageID(page), doc)
	if client.IsNotFound(err) {
		err = domain.Errorf(domain.NotFound, "there is no such page")
	}
	return doc, err
}

// MarkServed implements [repository.WatchPages]. It changes nothing if the cursors of the page have
// changed since the given version.
func (s *Store) MarkServed(ctx context.Context, shard int, stream domain.StreamName, page int, version repository.WatchPageVersion, served int64) error {
	c := s.client.Begin("mark served")
	ops := client.NewPatch(watchPageDocument, fmt.Sprintf("c.writeId = '%s'", version), fmt.Sprintf("(NOT IS_DEFINED(c.served) OR c.served < %d)", served))
	ops.AppendSet("/served", served)
	err := c.Retry(ctx, func() error {
		// If the node crashes before this write, the page is served again. Its cursors have stored their
		// positions, so no entry is delivered again for this reason.
		err := c.Patch(ctx, s.cursors, watchPagesKey(shardKey(shard), stream.String()), watchPageID(page), ops, &watchPageDoc{})
		if client.StatusOf(err) != http.StatusPreconditionFailed {
			return err
		}
		doc, err := s.readWatchPage(ctx, c, shard, stream, page)
		if err == nil && (doc.WriteID != string(version) || doc.Served < served) {
			err = domain.Errorf(domain.Conflict, "the page has changed since it was read")
		}
		return err
	})
	return c.Outcome(fmt.Sprintf("mark page %d of the watches of %s in shard %d as served", page, stream, shard), err)
}
