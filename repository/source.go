package repository

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Source reads the present objects of stores. It has some buckets, and fails with ErrNoStore for
// others. It is safe for concurrent use.
//
// Any method may fail with Busy, and with Unavailable, which may be due to the configuration: a store
// that refuses the credentials is Unavailable.
type Source interface {
	// List returns a page of up to limit objects of a bucket whose keys have a prefix, in the byte
	// order of their keys, each key once. For a bucket with versions, it has the latest version of each
	// key, which may be a delete marker. cursor is the SourcePage.Cursor of the previous page, empty
	// for the first page. A page may be empty without being the last. If a store repeats a page, or
	// does not keep the order, List fails with Unavailable: the page can be requested again. It fails
	// with NotFound if there is no such bucket.
	//
	// Members that a store does not list are empty: on S3 these are SHA256 and ArchiveStatus.
	List(ctx context.Context, bucket, prefix, cursor string, limit int) (SourcePage, error)

	// Stat returns a version of an object or, without a version, the latest one. It fails with NotFound
	// if the bucket has no such version, or if the latest one is a delete marker. If there is no such
	// bucket, it fails with Unavailable, so that a wrong configuration does not delete an object.
	Stat(ctx context.Context, name domain.ObjectName, version *domain.VersionID) (SourceObject, error)

	// Link returns a URL by which anyone may read a version of an object, for a limited time. It does
	// not check that there is such a version. It fails with ErrNoLinks if the store has no links, and
	// with Invalid for a time that is not from a second to MaxLinkTime.
	Link(ctx context.Context, name domain.ObjectName, version domain.VersionID, opts LinkOptions) (string, error)

	// Open returns the content of the latest version of an object, as it is stored. The caller closes
	// it. Its Read fails as a method does, with Unavailable if the content ends early, or if the store
	// sends nothing for a minute, and when ctx ends. Open fails with NotFound if there is no such
	// object, or no such bucket, and with Invalid if the content is archived.
	Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error)
}

// ErrNoStore reports a bucket whose store is not configured.
var ErrNoStore = errors.New("the store of the bucket is not configured")

// ErrNoLinks reports a store whose objects have no links, such as a folder.
var ErrNoLinks = errors.New("the store has no links")

// MaxLinkTime is the limit for the time for which a link is valid. S3 and Azure have the same limit.
const MaxLinkTime = 7 * 24 * time.Hour

// A SourcePage is a page of a listing.
type SourcePage struct {
	Objects []SourceObject
	Cursor  string // cursor for the next page; empty: this is the last one
}

// A SourceObject is what a store reports of a version of an object. Its reason is Crawl, or
// CrawlRestored if a copy of an archived object can be read.
type SourceObject struct {
	Key     string
	Version domain.VersionID
	Marker  bool // a delete marker: the object does not exist
	domain.ObjectFacts
}

// LinkOptions are the properties of a link.
type LinkOptions struct {
	Expires         time.Duration
	Disposition     string // header Content-Disposition of the answer; empty: as the store has it
	ContentType     string // content type of the answer; empty: as the store has it
	ContentEncoding string // content encoding of the answer; empty: as the store has it
}
