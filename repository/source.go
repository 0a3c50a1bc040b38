package repository

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Source reads the present objects of stores. For a bucket that is not configured, each method fails
// with ErrNoStore. A Source is safe for concurrent use.
//
// Any method may fail with Busy and Unavailable. Unavailable may be due to the configuration: a store
// that refuses the credentials is Unavailable.
type Source interface {
	// List returns a page of up to limit objects of a bucket whose keys have a prefix, in the byte order
	// of their keys, each key once. For a bucket with versions, the page contains the latest version of
	// each key, which may be a delete marker. cursor is the SourcePage.Cursor of the previous page, or
	// empty for the first page. A page that is not the last may be empty. If a store repeats a page, or
	// returns keys out of order, List fails with Unavailable: the page can be requested again. List
	// fails with NotFound if the bucket does not exist.
	//
	// Members that the list of a store does not contain are empty: on S3, SHA256 and ArchiveStatus.
	List(ctx context.Context, bucket, prefix, cursor string, limit int) (SourcePage, error)

	// Stat returns a version of an object; a nil version selects the latest version. It fails with
	// NotFound if the version does not exist, or if the latest version is a delete marker. If the bucket
	// does not exist, Stat fails with Unavailable, so that a wrong configuration does not delete an
	// object from the ledger.
	Stat(ctx context.Context, name domain.ObjectName, version *domain.VersionID) (SourceObject, error)

	// Link returns a URL with which anyone can read a version of an object, for a limited time. It does
	// not check that the version exists. It fails with ErrNoLinks if the store has no links, and with
	// Invalid if opts.Expires is less than a second or more than MaxLinkTime.
	Link(ctx context.Context, name domain.ObjectName, version domain.VersionID, opts LinkOptions) (string, error)

	// Open returns a reader of the stored content of the latest version of an object. The caller closes
	// the reader. Its Read fails with the same kinds as a method: with Unavailable if the content ends
	// early, or if the store sends no data for a minute. Read also fails when ctx ends. Open fails with
	// NotFound if the object or the bucket does not exist, and with Invalid if the content is archived.
	Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error)
}

// ErrNoStore reports a bucket whose store is not configured.
var ErrNoStore = errors.New("the store of the bucket is not configured")

// ErrNoLinks reports a store that cannot create links, such as a folder.
var ErrNoLinks = errors.New("the store has no links")

// MaxLinkTime is the longest validity of a link. S3 and Azure have the same limit.
const MaxLinkTime = 7 * 24 * time.Hour

// A SourcePage is a page of a listing.
type SourcePage struct {
	Objects []SourceObject
	Cursor  string // cursor for the next page; empty: this page is the last
}

// A SourceObject describes a version of an object in a store. Its reason is Crawl, or CrawlRestored if a
// restored copy of an archived object can be read.
type SourceObject struct {
	Key     string
	Version domain.VersionID
	Marker  bool // a delete marker: the object does not exist
	domain.ObjectFacts
}

// LinkOptions are the properties of a link.
type LinkOptions struct {
	Expires         time.Duration
	Disposition     string // Content-Disposition of the response; empty: the stored value
	ContentType     string // Content-Type of the response; empty: the stored value
	ContentEncoding string // Content-Encoding of the response; empty: the stored value
}
