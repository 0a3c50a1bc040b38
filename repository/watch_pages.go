package repository

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// WatchPages stores, in each shard, the cursors of the watches of a resource in pages of up to
// WatchPageSize cursors, so that a node can read a shard with a million watches page by page.
//
// The cursor of a watch has an entry in its shard only while the cursor has outstanding deliveries: see
// [domain.Settlement]. [Cursors.Create] adds the cursor to a page, and [Cursors.Retire] removes it.
type WatchPages interface {
	// WatchPage returns a page of the watches of a stream in a shard. The result may be stale. WatchPage
	// fails with NotFound if the page does not exist.
	WatchPage(ctx context.Context, shard int, stream domain.StreamName, page int) (WatchPage, error)

	// MarkServed raises Served of a page to served. It fails with Conflict if the page no longer has
	// version, because a watch was added or removed.
	MarkServed(ctx context.Context, shard int, stream domain.StreamName, page int, version WatchPageVersion, served int64) error
}

// WatchPageSize is the limit for the cursors of a page.
const WatchPageSize = 500

// A WatchedStream is a stream whose watches have cursors in a shard.
type WatchedStream struct {
	Stream domain.StreamName
	Pages  int // number of pages; the last pages may not exist yet
}

// A WatchPage contains the cursors of watches. Some of these cursors may not be created yet.
type WatchPage struct {
	Cursors []domain.CursorID // cursors, in the order in which they were added
	// Served is a number that the position of every cursor of the page has reached. A cursor with an
	// outstanding delivery of an entry before Served has an entry in its shard.
	Served  int64
	Version WatchPageVersion
}

// A WatchPageVersion identifies the cursors of a page for its store.
type WatchPageVersion string
