// Package ledger records which objects exist in object stores. It stores the events that the stores
// report about their objects, and returns the resulting state of each object.
//
//	events of stores ─▶ Service ─▶ repository.Objects ─▶ current and historical rows
//	stores           ─▶            (the rules are in package domain)
//	queries          ─▶ List, Count, Find, History, Pairs
//	users            ─▶ Amend
//
// The hub also stores its own data as objects: [WatchContents] notifies the hub when such an object is
// deleted.
//
// The package gives the guarantees of [repository.Objects]. After a failure, events that were reported
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

// Ports contains the stores that a Service uses.
type Ports struct {
	Objects repository.Objects
	Jobs    repository.Jobs
	Source  repository.Source // gives access to the configured stores; nil: no store is configured
}

// Options configures a Service. The zero value is valid.
type Options struct {
	Clock  func() time.Time // default time.Now
	Random func() uint64    // source for ids and jitter; default: rand.Uint64
	Logger *slog.Logger     // default: a logger that discards all messages

	// ReadParquet returns the rows of a Parquet file of size bytes. Each row is a map from column
	// names to texts. ReadParquet fails with Invalid if the file is not valid. If it is nil,
	// inventories in Parquet are refused.
	ReadParquet func(r io.Reader, size int64) iter.Seq2[map[string]string, error]

	CrawlPage int // maximum number of objects on a page of a crawl; default 1000

	// HasClock reports whether the times of a bucket's events come from the hub's clock. If so,
	// crawls of the bucket need no domain.ClockMargin. If HasClock is nil, no bucket's events have
	// such times.
	HasClock func(bucket string) bool

	// JSONPatch applies the operations of a JSON Patch (RFC 6902) to a document, and returns the
	// result. It is required for patches of attributes. This package checks the operations and the
	// limits before and after the call.
	JSONPatch func(document, operations []byte) ([]byte, error)

	LinkTime  time.Duration // maximum and default lifetime of a link; default MaxLinkTime
	LinkLimit int64         // maximum length, in bytes, of an object for which there are links; 0: no limit
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

// A Service implements the ledger. It is safe for concurrent use.
type Service struct {
	Ports
	opts Options
	jobs jobRunner
}

// New returns a Service. Its jobs run only while RunJobs is running.
func New(ports Ports, opts Options) *Service {
	return &Service{Ports: ports, opts: opts.withDefaults(), jobs: newJobRunner()}
}
