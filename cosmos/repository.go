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

// Options of a Repository. The zero value fits one of several nodes.
type Options struct {
	Groups         domain.Groups // default: domain.DefaultGroups
	DrawerCapacity int           // events in a drawer; default 10,000, at most a million; the same on all nodes
	// Exclusive says that only this process uses the store, so an intent of another owner belongs to a
	// process that has died.
	Exclusive bool
	Ordering  domain.Ordering // default: domain.ByCabinet

	// FreezeNew freezes each recipient in whose groups nothing was ever thawed, peeked or acknowledged,
	// as if Freeze had been called. A recipient may have received events that a restored backup does
	// not show.
	FreezeNew bool
	Retries   int // number of retries that the requests of one call share; default 24, negative: none
	// Retention is the minimum time for which acknowledged events and closed bundles are kept. They are
	// kept up to a quarter longer, and until the next sweep. Default 7 days, negative: unlimited.
	Retention time.Duration
	// Shared is the content store that hub and domains share, if there is one. When a drawer is
	// removed, its folder is removed there, too.
	Shared repository.Content
	// TailEvents is the number of events of a cabinet that may stay in the head until they are written
	// to a page, at most 200; use DefaultTailEvents. 0: none, so every Save is large. Whatever its
	// value, nodes read the events that are in a head, and a large Save flushes the tails of its
	// cabinets. Nodes may have different values, but all of them must know tails.
	TailEvents int
	// KeepCabinets keeps empty cabinets; they count for the limit of a recipient's cabinets. It is for
	// nodes that share a store with older versions, which do not serve a recipient once one of its
	// cabinets was removed.
	KeepCabinets bool
	// Unfiltered is the number of cabinets up to which a node that does not know a recipient reads each
	// of them instead of the filter of the recipient. Default 2, negative: none.
	Unfiltered int
	// StoreTraces keeps the span on whose behalf events are saved, and that of the Peek that opens a
	// bundle, if they are sampled. Nodes may have different values.
	StoreTraces bool

	SweepEvery time.Duration // interval between the sweeps of all nodes together; default 1 h, negative: only when Sweep is called
	// SweepUnits is the limit for the request units per second of the sweeps that Run starts; they
	// spend less for a while after a request was throttled. Default 1,000, negative: no limit.
	SweepUnits float64
	IndexBytes int                   // memory for the ids of received events, of which one recipient gets up to half; default 64 MB
	Clock      func() time.Time      // default time.Now; its time is stored, and decides nothing
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
	owner   string // id of this process, in the intents that it writes
	metrics *repairMetrics
	writers *writers
	hints   *hints
	known   *recipientCache
	newer   *client.NewerFormats
	inFront *alarm

	lostPages *alarm

	removed     atomic.Pointer[func(domain.ActorID)] // see ObserveRemovals
	waitingFrom atomic.Pointer[string]               // position at which the next Waiting continues; nil: the start
}

var (
	_ repository.DataAvailable = (*Repository)(nil)
	_ repository.Bundles       = (*Repository)(nil)
)

// drawersPerBundle is the limit for the drawers of a bundle: six full ones hold more than the heaviest
// bundle of events of 1 KB.
const drawersPerBundle = 6

// DefaultTailEvents has the lowest cost over the whole life of an event; 16 costs the same within 1 %.
const DefaultTailEvents = 24

// DefaultSweepUnits is a quarter of the suggested throughput of a container. To remove an event that
// was saved in a call of its own costs up to half a request unit, so a sweep keeps up with 2,000 of
// them per second.
const DefaultSweepUnits = 1_000

// To read this number of cabinets one by one costs as much as to read the filter of their recipient.
const defaultUnfiltered = 2

// maxTailEvents is well below maxTail, above which a reader treats a tail as damaged.
const maxTailEvents = 200

// New returns a Repository over db that keeps payloads in content. It makes no call and starts no
// goroutine; Run does.
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

// Run writes hints and sweeps in the background until ctx ends. Without it all results are the same,
// but every Peek has to repair pointers, and nothing is ever removed.
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
