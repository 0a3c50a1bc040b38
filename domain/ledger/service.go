// Package ledger records which objects exist in stores: it stores the events that stores report about
// their objects, and returns the resulting state.
//
//	events of stores ─▶ Service ─▶ repository.Objects ─▶ current and historical rows
//	stores           ─▶            (the rules are in package domain)
//	queries          ─▶ List, Count, Find, History, Pairs
//	users            ─▶ Amend
//
// The hub also stores its own contents as objects: [WatchContents] notifies the hub of deleted contents.
//
// The package has the guarantees of [repository.Objects]. After a failure, events that were reported
// as stored are durable, and all other events can be sent again.
package ledger

import (
	"cmp"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/messagehub/messagehub/repository"
)

// Ports are the stores that a Service uses.
type Ports struct {
	Objects repository.Objects
	Jobs    repository.Jobs
	Source  repository.Source // access to the configured stores; nil: no store is configured
}

// Options of a Service. The zero value is valid.
type Options struct {
	Clock  func() time.Time // default time.Now
	Random func() uint64    // source of ids and jitter; default: rand.Uint64
	Logger *slog.Logger     // default: a logger that discards everything

	// ReadParquet returns the rows of a Parquet file of size bytes, each as a map from the names of
	// columns to texts. It fails with Invalid if the file is not valid. Nil: inventories in Parquet
	// are refused.
	ReadParquet func(r io.Reader, size int64) iter.Seq2[map[string]string, error]

	CrawlPage int // maximum number of objects on a page of a crawl; default 1000

	// HasClock reports whether the events of a bucket have times of the hub's clock. If so, crawls
	// of the bucket need no domain.ClockMargin. Nil: the events of no bucket have such times.
	HasClock func(bucket string) bool

	// JSONPatch applies the operations of a JSON Patch (RFC 6902) to a document, and returns the
	// result. It is required for patches of attributes. This package checks the operations and the
	// limits before and after the call.
	JSONPatch func(document, operations []byte) ([]byte, error)

	LinkTime  time.Duration // maximum and default time until a link expires; default MaxLinkTime
	LinkLimit int64         // maximum length of an object with a link, in bytes; 0: no limit
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Random == nil {
		o.Random = rand.Uint64
	}
	o.CrawlPage = cmp.Or(o.CrawlPage, 1000)
	o.LinkTime = cmp.Or(o.LinkTime, MaxLinkTime)
	return o
}

// A Service is safe for concurrent use.
type Service struct {
	Ports
	opts Options
	jobs jobRunner
}

// New returns a Service. Jobs run only while RunJobs is running.
func New(ports Ports, opts Options) *Service {
	return &Service{Ports: ports, opts: opts.withDefaults(), jobs: newJobRunner()}
}
