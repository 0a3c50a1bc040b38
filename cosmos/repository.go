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

// Options of a Repository. The zero value is for a node that shares the store with other nodes.
type Options struct {
	Groups         domain.Groups // default: domain.DefaultGroups
	DrawerCapacity int           // events in a drawer; default 10,000, at most a million; the same on all nodes
	// Exclusive says that only this process uses the store, so an intent of another owner belongs to a
	// process that has died.
	Exclusive bool
	Ordering  domain.Ordering // default: domain.ByCabinet

	// FreezeNew freezes, as Freeze does, each recipient in whose groups no Peek, Dequeue or Thaw was ever
	// made. It is for a store that was restored from a backup: such a recipient may have received events
	// that the backup does not have.
	FreezeNew bool
	Retries   int // number of retries that the requests of one call share; default 24, negative: none
	// Retention is the minimum time for which acknowledged events and closed bundles are retained.
	// A sweep removes them up to a quarter of this time later. Default 7 days, negative: unlimited.
	Retention time.Duration
	// Shared is the content store that hub and domains share, or nil. A sweep that removes a drawer also
	// removes the folder of the drawer in Shared.
	Shared repository.Content
	// TailEvents is the limit for the events of a cabinet that stay in the head until they are written to
	// a page, at most 200; use DefaultTailEvents. 0: no tails, so every Save is large. With any value, a
	// node reads the tails in a head, and a large Save flushes the tails of its cabinets. Nodes may have
	// different values, but every node must be of a version with tails.
	TailEvents int
	// KeepCabinets retains empty cabinets, which count for the limit of a recipient's cabinets. It is for
	// nodes that share a store with older versions: those do not serve a recipient after one of its
	// cabinets was removed.
	KeepCabinets bool
	// MaxUnfilteredCabinets is the limit up to which a node reads unknown cabinets of a recipient one by one. If more
	// cabinets are unknown to the node, it reads the filter of the recipient. Default 2, negative: 0.
	MaxUnfilteredCabinets int
	// StoreTraces stores the span in which events are saved, and the span of the Peek that opens a bundle,
	// if the span is sampled. Nodes may have different values.
	StoreTraces bool

	SweepEvery time.Duration // interval between sweeps, by any node; default 1 h, negative: Run does not sweep
	// SweepUnits is the limit for the request units per second of the sweeps that Run starts. For a while
	// after a request was throttled, the limit is lower. Default 1,000, negative: no limit.
	SweepUnits float64
	IndexBytes int                   // memory for the ids of received events, up to half of it for one recipient; default 64 MB
	Clock      func() time.Time      // default time.Now; the clock for stored times
	Random     func() uint64         // source of ids and jitter; default: the random source of the system
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
	waitingFrom atomic.Pointer[string]               // where the next Waiting continues; nil: at the start
}

var (
	_ repository.DataAvailable = (*Repository)(nil)
	_ repository.Bundles       = (*Repository)(nil)
)

// drawersPerBundle is the limit for the drawers of a bundle: six full drawers hold more events than the
// heaviest bundle has, if each event weighs 1 KB.
const drawersPerBundle = 6

// DefaultTailEvents is the value of Options.TailEvents with the lowest cost over the whole life of an
// event; 16 costs the same within 1 %.
const DefaultTailEvents = 24

// DefaultSweepUnits is a quarter of the suggested throughput of a container. The removal of an event that
// was saved alone costs up to half a request unit, so a sweep keeps up with 2,000 of these events per
// second.
const DefaultSweepUnits = 1_000

// defaultUnfiltered is the number of cabinets that cost as much to read one by one as the filter of their
// recipient.
const defaultUnfiltered = 2

// maxTailEvents is well below maxTail, above which a reader treats a tail as damaged.
const maxTailEvents = 200

// New returns a Repository that stores documents in db and payloads in content. It makes no request and
// starts no goroutine; Run does both.
func New(db *client.Database, content repository.Content, opts Options) *Repository {
	if len(opts.Groups.All()) == 0 {
		opts.Groups = domain.DefaultGroups()
	}
	opts.DrawerCapacity = min(cmp.Or(opts.DrawerCapacity, 10_000), maxSlots)
	opts.TailEvents = min(opts.TailEvents, maxTailEvents)
	opts.MaxUnfilteredCabinets = max(cmp.Or(opts.MaxUnfilteredCabinets, defaultUnfiltered), 0)
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
	r.lostPages = newAlarm(opts.Logger, r.metrics.lostPages, "a page is lost, and its cabinet waits", lostPageAction)
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

// Run writes hints and sweeps in the background until ctx ends. Without Run, all results are the same, but
// Peeks must repair entries, and no sweep removes acknowledged events.
func (r *Repository) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return r.hints.run(ctx) })
	if r.opts.Retention > 0 && r.opts.SweepEvery > 0 {
		g.Go(func() error { r.runSweeps(ctx); return nil })
	}
	return g.Wait()
}

// CheckContainers reads the properties of every container and returns an error if they are wrong; see
// [client.Client.CheckContainers]. Every node calls it before it accepts requests.
func (r *Repository) CheckContainers(ctx context.Context) error { return r.client.CheckContainers(ctx) }

// ContainersFault returns the present fault of the containers, or nil; see
// [client.Client.ContainersFault].
func (r *Repository) ContainersFault(ctx context.Context) error { return r.client.ContainersFault(ctx) }

// Provision creates and corrects the resources that opts name; see [client.Client.Provision].
func (r *Repository) Provision(ctx context.Context, opts client.ProvisionOptions) ([]client.Provisioned, error) {
	return r.client.Provision(ctx, opts)
}
