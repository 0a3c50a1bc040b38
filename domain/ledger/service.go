// Package ledger has the use cases of objects: it stores the events that stores report about
// their objects, and answers queries about the resulting state.
//
//	events of stores ─▶ Service ─▶ repository.Objects ─▶ current and historical rows
//	stores           ─▶            (the rules are in package domain)
//	queries          ─▶ List, Count, Find, History, Pairs
//	users            ─▶ Amend
//
// The hub's own contents are objects, too: [WatchContents] notifies the hub of contents that
// were deleted.
//
// Its guarantees are those of the store of objects: see [repository.Objects]. After a failure,
// events with an outcome are stored, and all others may be sent again.
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
	Source  repository.Source // the configured stores; nil: no store is configured
}

// Options of a Service. The zero value is valid.
type Options struct {
	Clock  func() time.Time // default time.Now
	Random func() uint64    // for ids and jitter; default: the system's
	Logger *slog.Logger     // default: nothing is logged

	// ReadParquet returns the rows of a Parquet file with size bytes: texts by the names of
	// their columns. A wrong file is an Invalid error. Nil: inventories in that format are
	// refused.
	ReadParquet func(r io.Reader, size int64) iter.Seq2[map[string]string, error]

	CrawlPage int // objects that a crawl lists at a time; default 1000

	// HasClock reports whether the events of a bucket have times of the same clock as the hub.
	// Then its crawls need no domain.ClockMargin. Nil: no bucket has such times.
	HasClock func(bucket string) bool

	// JSONPatch applies operations of RFC 6902 to a document, without a side effect. Patches of
	// attributes need it; this package checks their operations and limits.
	JSONPatch func(document, operations []byte) ([]byte, error)

	LinkTime  time.Duration // limit, and default, for the time in which a link can be used; default MaxLinkTime
	LinkLimit int64         // bytes of an object that may have a link; 0: no limit
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

// New returns a Service. It starts nothing.
func New(ports Ports, opts Options) *Service {
	return &Service{Ports: ports, opts: opts.withDefaults(), jobs: newJobRunner()}
}
