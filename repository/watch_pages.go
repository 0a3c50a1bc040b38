package repository

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// WatchPages keeps the cursors of the watches of each resource in pages of up to WatchPageSize, in each
// shard, so that a node can read a shard with a million of them page by page.
//
// The cursor of a watch has an entry in its shard only while it has outstanding deliveries: see
// [domain.Settlement]. [Cursors.Create] adds it to a page, and [Cursors.Retire] removes it.
type WatchPages interface {
	// WatchPage returns a page of the watches of a stream in a shard. It may be a stale read. It fails
	// with NotFound if the page does not exist.
	WatchPage(ctx context.Context, shard int, stream domain.StreamName, page int) (WatchPage, error)

	// MarkServed raises Served of a page that has version. It fails with Conflict if a watch was added
	// or removed since.
	MarkServed(ctx context.Context, shard int, stream domain.StreamName, page int, version WatchPageVersion, served int64) error
}

// WatchPageSize is the limit for the cursors of a page.
const WatchPageSize = 500

// A WatchedStream is a stream whose watches have cursors in a shard.
type WatchedStream struct {
	Stream domain.StreamName
	Pages  int // some of the last ones may not exist yet
}

// A WatchPage has cursors of watches. A cursor may not have been created yet.
type WatchPage struct {
	Cursors []domain.CursorID // in the order in which they were added
	// Served is the number after the last entry that every cursor of the page has taken. A cursor has
	// an entry in its shard if something before that is outstanding.
	Served  int64
	Version WatchPageVersion
}

// A WatchPageVersion identifies the cursors of a page for its store.
type WatchPageVersion string
