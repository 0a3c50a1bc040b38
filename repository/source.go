package repository

import (
	"context"
	"errors"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Source is a store of objects, as it is now.
type Source interface {
	// List returns a page of the objects of a bucket whose keys have a prefix, in the order of their
	// keys, byte by byte. A bucket with versions has the latest version of each key, which may be a
	// delete marker. cursor is SourcePage.Cursor of the page before, and empty for the first page. It is
	// NotFound if there is no such bucket.
	List(ctx context.Context, bucket, prefix, cursor string, limit int) (SourcePage, error)

	// Stat returns a version of an object; with no version, the latest one. It is NotFound if there is
	// no such version, or if the latest one is a delete marker.
	Stat(ctx context.Context, name domain.ObjectName, version *domain.VersionID) (SourceObject, error)

	// Link returns a URL by which anyone may read a version of an object, for a time. It fails with
	// ErrNoLinks if the store has none.
	Link(ctx context.Context, name domain.ObjectName, version domain.VersionID, opts LinkOptions) (string, error)
}

// ErrNoLinks reports a store whose objects have no links, such as a folder.
var ErrNoLinks = errors.New("the store has no links")

// A SourcePage is a page of a listing.
type SourcePage struct {
	Objects []SourceObject
	Cursor  string // of the next page; empty: this is the last one
}

// A SourceObject is what a store says of a version of an object.
type SourceObject struct {
	Key     string
	Version domain.VersionID
	Marker  bool // a delete marker: the object does not exist
	domain.ObjectFacts
}

// LinkOptions say what a link is for.
type LinkOptions struct {
	Expires     time.Duration // up to 7 days
	Disposition string        // value of the header Content-Disposition of the answer; empty: that of the store
	ContentType string        // of the answer; empty: that of the store
}
