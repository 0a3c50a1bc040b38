package cosmos

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Options of a Repository. The zero value is right for one of several nodes.
type Options struct {
	Groups         domain.Groups // default: domain.DefaultGroups
	DrawerCapacity int           // events; default 10,000, at most a million. All nodes must agree on it
	// Exclusive says that this process owns the store alone, so that an intent
	// of another owner is one of a process that has died.
	Exclusive bool
	Ordering  domain.Ordering // default: domain.ByCabinet
	Retries   int             // of the requests of one call; default 24, negative: none
	// Retention is how long acknowledged events and closed bundles are kept, at
	// least; up to a quarter longer, and until the next sweep. Default 7 days,
	// negative: for ever.
	Retention time.Duration
	// Shared is the content store that hub and domains share, if there is one. The
	// folder of a drawer is removed there, too, when the drawer is.
	Shared     repository.Content
	SweepEvery time.Duration         // how often one of the nodes sweeps; default 1 h, negative: never by itself
	IndexBytes int                   // memory for the ids of received events, but for a recipient who needs more; default 64 MB
	Clock      func() time.Time      // default time.Now; stamps bundles, decides nothing
	Random     func() uint64         // ids and jitter; default: the system's
	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: none
}

// A Repository keeps events and bundles in Cosmos. It is safe for concurrent
// use.
type Repository struct {
	db      *Database
	content repository.Content
	opts    Options
	owner   string // this process, in the intents that it writes
	metrics *metrics
	writers *writers
	hints   *hints
	known   *known
	newer   *newerMailboxes

	containers containerWatch

	waitingFrom atomic.Pointer[string] // where the next Waiting goes on; nil: from the start
}

var (
	_ repository.DataAvailable = (*Repository)(nil)
	_ repository.Bundles       = (*Repository)(nil)
)

// drawersPerBundle is how many drawers a bundle spans at most: six full ones
// hold more than the heaviest bundle of events of 1 KB.
const drawersPerBundle = 6

// New returns a Repository over db that keeps payloads in content. It makes no
// call and starts nothing; Run does.
func New(db *Database, content repository.Content, opts Options) *Repository {
	if len(opts.Groups.All()) == 0 {
		opts.Groups = domain.DefaultGroups()
	}
	opts.DrawerCapacity = min(cmp.Or(opts.DrawerCapacity, 10_000), maxSlots)
	opts.Retries = max(cmp.Or(opts.Retries, 24), 0)
	opts.IndexBytes = cmp.Or(opts.IndexBytes, 64<<20)
	opts.Retention = cmp.Or(opts.Retention, 7*24*time.Hour)
	opts.SweepEvery = cmp.Or(opts.SweepEvery, time.Hour)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Random == nil {
		opts.Random = systemRandom
	}
	r := &Repository{
		db: db, content: content, opts: opts, metrics: newMetrics(opts.Registerer),
		containers: containerWatch{turn: make(chan struct{}, 1)},
	}
	r.owner = r.newID()
	r.writers = newWriters(r)
	r.hints = newHints(r)
	r.known = newKnown()
	r.newer = &newerMailboxes{
		logger: opts.Logger, refused: r.metrics.refusedFormats, reported: r.metrics.newerMailboxes,
		documents: make(map[string]string),
	}
	return r
}

// Run writes hints and sweeps in the background until ctx ends. Without it the
// hub is just as right, but every Peek has to mend pointers and nothing is ever
// removed.
func (r *Repository) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return r.hints.run(ctx) })
	if r.opts.Retention > 0 && r.opts.SweepEvery > 0 {
		g.Go(func() error { r.sweepAgainAndAgain(ctx); return nil })
	}
	return g.Wait()
}

// newID returns a random UUID, the name of a drawer, an intent or a write.
func (r *Repository) newID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], r.opts.Random())
	binary.BigEndian.PutUint64(b[8:], r.opts.Random())
	b[6] = b[6]&0x0f | 0x40 // version 4
	b[8] = b[8]&0x3f | 0x80 // RFC 9562 variant
	t := hex.EncodeToString(b[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// jitter returns a random duration below d.
func (r *Repository) jitter(d time.Duration) time.Duration {
	return time.Duration(r.opts.Random() % uint64(max(d, 1))) //nolint:gosec // positive
}

func systemRandom() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, says its documentation
	return binary.BigEndian.Uint64(b[:])
}
