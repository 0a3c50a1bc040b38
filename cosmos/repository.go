package cosmos

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
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

	// FreezeNew freezes every recipient that was never thawed, peeked for or acknowledged in
	// some group, as if Freeze had been called. What was restored from a backup may be unknown to it and known to
	// the recipient.
	FreezeNew bool
	Retries   int // of the requests of one call; default 24, negative: none
	// Retention is how long acknowledged events and closed bundles are kept, at
	// least; up to a quarter longer, and until the next sweep. Default 7 days,
	// negative: unlimited.
	Retention time.Duration
	// Shared is the content store that hub and domains share, if there is one. The
	// folder of a drawer is removed there, too, when the drawer is.
	Shared repository.Content
	// TailEvents is how many events of a cabinet may stay in the head until they are written
	// to a page, at most 200; DefaultTailEvents is right. 0: none, so every Save is large.
	// Events that are in a head are read whatever it is, and a large Save flushes those of its
	// cabinets. Nodes need not agree on it, but all of them must know tails.
	TailEvents int
	// KeepCabinets keeps empty cabinets: they count among the cabinets that a
	// recipient may have. It is for nodes that share a store with older versions, which do not
	// serve a recipient once one of its cabinets was removed.
	KeepCabinets bool
	// Unfiltered is how many cabinets a node that does not know a recipient reads one by one
	// rather than the filter of the recipient. Default 2, negative: none.
	Unfiltered int
	// StoreTraces keeps the span on whose behalf events are saved, and that of the Peek that opens
	// a bundle, if they are sampled. Nodes need not agree on it.
	StoreTraces bool

	SweepEvery time.Duration // how often one of the nodes sweeps; default 1 h, negative: only when Sweep is called
	// SweepUnits is how many request units a second the sweeps that Run starts spend, at most;
	// fewer for a while after a request was throttled. Default 1,000, negative: no limit.
	SweepUnits float64
	IndexBytes int                   // memory for the ids of received events, of which one recipient gets up to a half; default 64 MB
	Clock      func() time.Time      // default time.Now; stamps bundles, decides nothing
	Random     func() uint64         // ids and jitter; default: the system's
	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: none
}

// A Repository keeps events and bundles in Cosmos. It is safe for concurrent
// use.
type Repository struct {
	client  *client.Client
	db      database
	content repository.Content
	opts    Options
	owner   string // this process, in the intents that it writes
	metrics *repairMetrics
	writers *writers
	hints   *hints
	known   *recipientCache
	newer   *client.NewerFormats
	inFront *alarm

	lostPages *alarm

	removed     atomic.Pointer[func(domain.ActorID)] // see ObserveRemovals
	waitingFrom atomic.Pointer[string]               // where the next Waiting continues; nil: from the start
}

var (
	_ repository.DataAvailable = (*Repository)(nil)
	_ repository.Bundles       = (*Repository)(nil)
)

// drawersPerBundle is how many drawers a bundle spans at most: six full ones
// hold more than the heaviest bundle of events of 1 KB.
const drawersPerBundle = 6

// DefaultTailEvents costs the least over the whole life of an event; 16 costs the same within
// a hundredth.
const DefaultTailEvents = 24

// DefaultSweepUnits is a quarter of the throughput that is suggested for a container. Removing
// an event that was saved alone costs at most half a request unit, so it keeps up with 2,000 of
// them a second.
const DefaultSweepUnits = 1_000

// defaultUnfiltered cabinets cost as much to read one by one as the filter of their recipient.
const defaultUnfiltered = 2

// maxTailEvents leaves room below what a reader takes for damage.
const maxTailEvents = 200

// New returns a Repository over db that keeps payloads in content. It makes no
// call and starts nothing; Run does.
func New(db *client.Database, content repository.Content, opts Options) *Repository {
	if len(opts.Groups.All()) == 0 {
		opts.Groups = domain.DefaultGroups()
	}
	opts.DrawerCapacity = min(cmp.Or(opts.DrawerCapacity, 10_000), maxSlots)
	opts.TailEvents = min(opts.TailEvents, maxTailEvents)
	opts.Unfiltered = max(cmp.Or(opts.Unfiltered, defaultUnfiltered), 0)
	opts.IndexBytes = cmp.Or(opts.IndexBytes, 64<<20)
	opts.Retention = cmp.Or(opts.Retention, 7*24*time.Hour)
	opts.SweepEvery = cmp.Or(opts.SweepEvery, time.Hour)
	opts.SweepUnits = cmp.Or(opts.SweepUnits, DefaultSweepUnits)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	r := &Repository{db: openContainers(db), content: content, opts: opts, metrics: newMetrics(opts.Registerer)}
	r.newer = newNewerMailboxes(&opts, r.metrics)
	r.inFront = newAlarm(opts.Logger, r.metrics.inFront, "a gate is in front of its head: events may be lost", whatToDoInFront)
	r.lostPages = newAlarm(opts.Logger, r.metrics.lostPages, "a page is lost, and its cabinet waits", whatToDoLost)
	r.client = client.New(db, client.Options{
		Containers: Containers(), Retries: opts.Retries, Formats: r.newer,
		BackgroundUnits: opts.SweepUnits,
		Clock:           opts.Clock, Random: opts.Random, Logger: opts.Logger, Registerer: opts.Registerer,
	})
	r.owner = r.client.NewID()
	r.writers = newWriters(r)
	r.hints = newHints(r)
	r.known = newKnown()
	return r
}

// Run writes hints and sweeps in the background until ctx ends. Without it the
// hub is just as right, but every Peek has to repair pointers and nothing is ever
// removed.
func (r *Repository) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return r.hints.run(ctx) })
	if r.opts.Retention > 0 && r.opts.SweepEvery > 0 {
		g.Go(func() error { r.sweepAgainAndAgain(ctx); return nil })
	}
	return g.Wait()
}

// CheckContainers reads the properties of every container and returns what is wrong
// with them; see [client.Client.CheckContainers]. Every node calls it before it serves.
func (r *Repository) CheckContainers(ctx context.Context) error { return r.client.CheckContainers(ctx) }

// ContainersFault returns what is wrong with the containers now; see
// [client.Client.ContainersFault].
func (r *Repository) ContainersFault(ctx context.Context) error { return r.client.ContainersFault(ctx) }

// Provision creates and corrects what opts ask for; see [client.Client.Provision].
func (r *Repository) Provision(ctx context.Context, opts client.ProvisionOptions) ([]client.Provisioned, error) {
	return r.client.Provision(ctx, opts)
}
