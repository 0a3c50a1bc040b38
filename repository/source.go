package repository

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Source is what stores have of objects, as it is now. It has some buckets, and fails with ErrNoStore for
// others. It is safe for concurrent use.
//
// Any method may fail with Busy, and with Unavailable, for which the configuration may be the reason: a
// store that refuses the credentials is Unavailable.
type Source interface {
	// List returns a page of up to limit objects of a bucket whose keys have a prefix, in the order of
	// their keys, byte by byte, each key once. A bucket with versions has the latest version of each key,
	// which may be a delete marker. cursor is SourcePage.Cursor of the page before, and empty for the
	// first page. A page may be empty and not be the last one. A store that repeats a page, or that does
	// not keep the order, is Unavailable: the page can be asked for again. It is NotFound if there is
	// no such bucket.
	//
	// What a listing of the store does not have is empty: on S3 that is SHA256 and ArchiveStatus.
	List(ctx context.Context, bucket, prefix, cursor string, limit int) (SourcePage, error)

	// Stat returns a version of an object; with no version, the latest one. It is NotFound if the bucket
	// has no such version, or if the latest one is a delete marker. If there is no such bucket, it is
	// Unavailable, so that a wrong configuration does not delete an object.
	Stat(ctx context.Context, name domain.ObjectName, version *domain.VersionID) (SourceObject, error)

	// Link returns a URL by which anyone may read a version of an object, for a time. It does not ask the
	// store whether there is such a version. It fails with ErrNoLinks if the store has none, and with
	// Invalid for a time that is not from a second to MaxLinkTime.
	Link(ctx context.Context, name domain.ObjectName, version domain.VersionID, opts LinkOptions) (string, error)

	// Open returns the content of the latest version of an object, as it is stored. The caller closes it.
	// Reading it fails as a method does: with Unavailable if the content is cut, or if the store sends nothing
	// for a minute, and when ctx ends. It is NotFound if there is no such object, or no such bucket, and
	// Invalid if the content is archived.
	Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error)
}

// ErrNoStore reports a bucket whose store is not configured.
var ErrNoStore = errors.New("the store of the bucket is not configured")

// ErrNoLinks reports a store whose objects have no links, such as a folder.
var ErrNoLinks = errors.New("the store has no links")

// MaxLinkTime is the limit for the time in which a link can be used. S3 and Azure have the same.
const MaxLinkTime = 7 * 24 * time.Hour

// A SourcePage is a page of a listing.
type SourcePage struct {
	Objects []SourceObject
	Cursor  string // of the next page; empty: this is the last one
}

// A SourceObject is what a store says of a version of an object. Its reason is Crawl, or CrawlRestored
// if a copy of an archived object can be read.
type SourceObject struct {
	Key     string
	Version domain.VersionID
	Marker  bool // a delete marker: the object does not exist
	domain.ObjectFacts
}

// LinkOptions are the properties of a link.
type LinkOptions struct {
	Expires         time.Duration
	Disposition     string // value of the header Content-Disposition of the answer; empty: that of the store
	ContentType     string // of the answer; empty: that of the store
	ContentEncoding string // of the answer; empty: that of the store
}
