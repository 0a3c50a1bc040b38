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

// Options of a Repository. With the zero value, a node may share the store with other nodes.
type Options struct {
	Groups         domain.Groups // default: domain.DefaultGroups
	DrawerCapacity int           // number of events in a full drawer; default 10,000, at most a million; must be equal on all nodes
	// Exclusive states that only this process uses the store, so an intent of another owner belongs to a
	// process that has ended.
	Exclusive bool
	Ordering  domain.Ordering // default: domain.ByCabinet

	// FreezeNew freezes a recipient as Freeze does, unless a Peek, Dequeue or Thaw of the recipient is
	// recorded. It is for a store that was restored from a backup, because the recipient may have
	// received events that are not in the backup.
	FreezeNew bool
	Retries   int // limit for the retries of all requests of a call; default 24; negative for none
	// Retention is the minimum time for which acknowledged events and closed bundles are retained. A
	// sweep removes them at the latest a quarter of this time later. The default is 7 days; a negative
	// value means unlimited.
	Retention time.Duration
	// Shared is the content store that the hub shares with domains, or nil. A sweep that removes a drawer
	// also removes the folder of the drawer in Shared.
	Shared repository.Content
	// TailEvents limits the events of each cabinet that are stored in the head before they are written to
	// a page. It is at most 200; use DefaultTailEvents. With 0, every Save is large. With any value, a
	// node reads the tails in a head, and a large Save flushes the tails of its cabinets. Nodes may have
	// different values, but every node must have a version that supports tails.
	TailEvents int
	// KeepCabinets retains empty cabinets, although they count towards the limit for the cabinets of a
	// recipient. It is for nodes that share a store with older versions, which do not serve a recipient
	// after one of its cabinets was removed.
	KeepCabinets bool
	// MaxUnfilteredCabinets limits how many unknown cabinets of a recipient a node reads one by one. If
	// more cabinets are unknown to the node, it reads the filter of the recipient. The default is 2; a
	// negative value means 0.
	MaxUnfilteredCabinets int
	// StoreTraces stores the span of each Save, and the span of each Peek that opens a bundle, if the
	// span is sampled. Nodes may have different values.
	StoreTraces bool

	SweepEvery time.Duration // interval between the sweeps of all nodes; default 1 h; negative: Run does not sweep
	// SweepUnits limits the request units per second of the sweeps that Run starts. For some time after a
	// throttled request, the limit is lower. The default is 1,000; a negative value means no limit.
	SweepUnits float64
	IndexBytes int                   // limit for the memory for ids of received events; at most half of it for one recipient; default 64 MB
	Clock      func() time.Time      // clock for stored times; default time.Now
	Random     func() uint64         // source of ids and jitter; default: the random source of the operating system
	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: none
}

// A Repository stores events and bundles in Cosmos DB. It is safe for concurrent use.
type Repository struct {
	client  *client.Client
	db      database
	content repository.Content
	opts    Options
	owner   string // id of this process; stored in the intents that it writes
	metrics *repairMetrics
	writers *writers
	hints   *hints
	known   *recipientCache
	newer   *client.NewerFormats
	inFront *alarm

	lostPages *alarm

	removed     atomic.Pointer[func(domain.ActorID)] // see ObserveRemovals
	waitingFrom atomic.Pointer[string]               // where the next call of Waiting continues; nil: at the start
}

var (
	_ repository.DataAvailable = (*Repository)(nil)
	_ repository.Bundles       = (*Repository)(nil)
)

// drawersPerBundle limits the number of drawers of a bundle. If each event weighs 1 KB, six full drawers
// contain more events than the heaviest bundle.
const drawersPerBundle = 6

// DefaultTailEvents is the value of Options.TailEvents with the lowest total cost of an event, from its
// Save to its removal. The cost with 16 differs by less than 1 %.
const DefaultTailEvents = 24

// DefaultSweepUnits is a quarter of the suggested throughput of a container. The removal of an event that
// was saved alone costs up to half a request unit, so a sweep can remove 2,000 such events per second.
const DefaultSweepUnits = 1_000

// defaultUnfiltered is the number of cabinets that can be read one by one for the cost of reading the
// filter of the recipient.
const defaultUnfiltered = 2

// maxTailEvents is the limit for Options.TailEvents. It is well below maxTail, above which a reader
// treats a tail as damaged.
const maxTailEvents = 200

// New returns a Repository that stores documents in db and payloads in content. It sends no request and
// starts no goroutine.
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
	r.known = newRecipientCache()
	return r
}

// Run writes hints and sweeps in the background until ctx ends. Without Run, all results are the same,
// but Peeks must repair catalog entries, and acknowledged events are not removed.
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

// ContainersFault returns the current fault of the containers, or nil; see
// [client.Client.ContainersFault].
func (r *Repository) ContainersFault(ctx context.Context) error { return r.client.ContainersFault(ctx) }

// Provision creates and corrects resources according to opts; see [client.Client.Provision].
func (r *Repository) Provision(ctx context.Context, opts client.ProvisionOptions) ([]client.Provisioned, error) {
	return r.client.Provision(ctx, opts)
}
