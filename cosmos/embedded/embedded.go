package embedded

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/physics"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/wire"
)

// WellKnownKey is the account key that all Cosmos DB emulators share.
const WellKnownKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// FileFormat is the number of the format of the file in Options.Dir.
const FileFormat = engine.Format

// Options set up an Engine. The zero value is an empty account in memory.
type Options struct {
	// Dir is the folder of the store. It is made if it does not exist, and
	// belongs to this engine alone. Without it all is kept in memory and
	// forgotten by Close.
	Dir string

	// Claim says which data folder the store in Dir must belong to. Default: it is not
	// checked.
	Claim datafolder.Claim

	// FileSystem opens the file in Dir. Default: that of the system.
	FileSystem disk.FileSystem

	// Unsynced answers writes before they are on the disk. What was answered survives
	// the death of the process, but not that of the machine, which may leave nothing
	// that can be opened. It is for measuring: documents are not on the heap, and
	// nobody waits for a disk. Default: what is answered is on the disk.
	Unsynced bool

	// Version is that of the program. A file whose format an older program does not know names
	// it. Default: it is not stored.
	Version string

	// Key is the account key in base64. Default: WellKnownKey.
	Key string

	// Clock gives the time for _ts. Default: time.Now. The dates of
	// requests are always checked against time.Now, as the client sets them.
	Clock func() time.Time

	// Consistency is the account's default level: Strong, BoundedStaleness,
	// Session, ConsistentPrefix or Eventual. Default: Strong, or Session if
	// Stale is set. Under the first two a point read costs twice.
	Consistency string

	// WriteRegions and ReadRegions are the names of the regions that the account states,
	// in the order of its answer. The engine serves all of them. Default: one region,
	// which has both roles.
	WriteRegions, ReadRegions []string

	// Stale makes reads old, in memory only: it is called once for each
	// point read and query page, and says how many commits ago the state is
	// that the read sees (at most 64). Writes, batches and reads with a
	// session token are never older than they may be. Several goroutines
	// may call it at once. Default: all reads are fresh.
	Stale func() int

	// Lag makes reads old by time, like Stale: it says how long ago the
	// state is that a read sees, but never more than 64 commits.
	Lag func() time.Duration

	// Committed is called after every commit and before its request is answered,
	// with the documents as the commit left them; also when the client has
	// disconnected. The calls come one at a time, in the order of the commits, and
	// the next commit waits for them: Committed must be fast and must not write to
	// the account. Default: no call.
	Committed func([]Change)

	// Collide is called once for each write, batch and bulk request, and says
	// whether it is answered 449 and not done. Azure does that now and then to
	// writes of the same document that meet; here they come one after the
	// other, so that none does by itself. Several goroutines may call it at
	// once. Default: no write meets another.
	Collide func() bool

	// Throttle holds every physical partition to its share of the
	// throughput of its container, and answers 429 beyond it, as Azure does.
	// Clock drives it. Default: throughput is accepted, and decides only how
	// many physical partitions there are.
	Throttle bool

	// Latency makes requests for documents take time. Default: none.
	Latency *Latency

	// QuerySteps bounds the work of one page of a query, and a 25th of it the work
	// for one document. A step takes 10 to 50 ns: an operator, an item of a list, a
	// row, or 16 bytes of a value that is read or made. A query whose documents have
	// results of their own continues on another page; any other is refused with 400.
	// Default: 50 million.
	QuerySteps int64

	// QueryMemory bounds the bytes of results, sort keys and groups that a query
	// keeps until its page is complete; beyond it, the query is refused with 400.
	// Default: 128 MB.
	QueryMemory int64

	// RangeBytes is how many bytes of documents a physical partition holds
	// before it splits. Default: 50 GB.
	RangeBytes int64

	// StrictIndex charges a query in one logical partition for every document of its
	// physical partition if the indexing policy does not include the partition key. A
	// service may find the partition without that index; a budget that is kept with
	// StrictIndex does not depend on it.
	StrictIndex bool

	// Pessimistic charges a query a full point read for every document it
	// loads, in place of the much lower figure that published query metrics
	// suggest.
	Pessimistic bool
}

// A Latency is how long answers take: Base, PerKB for each kilobyte of request
// and answer, and up to Jitter more; some take Slow besides. What is random is the
// same for the same Seed.
type Latency = physics.Latency

// A Change is a document after a commit.
type Change = engine.Change

// An Engine is one account. It is safe for use by many goroutines.
type Engine struct {
	store    disk.Store
	inner    *engine.Engine
	server   *wire.Server
	throttle *physics.Throttle // nil without Options.Throttle
	key      string
	host     string

	mu       sync.Mutex
	closed   bool
	requests sync.WaitGroup // under way; grows only while mu is held and closed is false
}

// Open opens the account in o.Dir. It starts one goroutine if that is set,
// none otherwise; Close ends it. The errors that package disk names can be
// told by errors.Is: the folder is locked, cannot be written, is not a folder,
// holds a damaged file, or the disk is full.
func Open(o Options) (*Engine, error) {
	if o.Stale != nil || o.Lag != nil {
		if o.Dir != "" {
			return nil, errors.New("embedded: Stale and Lag work in memory only; leave out Dir, or both")
		}
		if o.Consistency == "Strong" {
			return nil, errors.New("embedded: a Strong account has no stale reads; leave out Stale and Lag, or choose Session")
		}
		o.Consistency = cmp.Or(o.Consistency, "Session")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Key = cmp.Or(o.Key, WellKnownKey)
	store := disk.NewMemory()
	if o.Dir != "" {
		var err error
		if o.FileSystem == nil {
			o.FileSystem = disk.System{}
		}
		if o.Unsynced {
			store, err = disk.OpenUnsynced(o.Dir, o.FileSystem)
		} else {
			store, err = disk.OpenClaimed(o.Dir, o.FileSystem, o.Claim)
		}
		if err != nil {
			return nil, err
		}
	}
	e, err := openEngine(store, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", storePath(o.Dir), err), store.Close())
	}
	return e, nil
}

func queryLimits(o Options) query.Limits {
	limits := query.DefaultLimits
	if o.QuerySteps > 0 {
		limits.Steps, limits.Document = o.QuerySteps, int(max(1, o.QuerySteps/25))
	}
	if o.QueryMemory > 0 {
		limits.Memory = o.QueryMemory
	}
	return limits
}

// storePath returns the path of the file of a store, which is in memory without a folder.
func storePath(dir string) string {
	if dir == "" {
		return "a store in memory"
	}
	return filepath.Join(dir, disk.FileName)
}

func openEngine(store disk.Store, o Options) (*Engine, error) {
	inner, err := engine.Open(store, engine.Options{
		Version: o.Version,
		Clock:   o.Clock, Stale: o.Stale, Lag: o.Lag, Pessimistic: o.Pessimistic, StrictIndex: o.StrictIndex, RangeBytes: o.RangeBytes, Committed: o.Committed,
		Limits: queryLimits(o),
	})
	if err != nil {
		return nil, err
	}
	w := wire.Options{
		Key: o.Key, Consistency: cmp.Or(o.Consistency, "Strong"), Collides: o.Collide,
		WriteRegions: o.WriteRegions, ReadRegions: o.ReadRegions,
	}
	if o.Throttle {
		w.Throttle = physics.NewThrottle(o.Clock)
	}
	if o.Latency != nil {
		w.Delayer = physics.NewDelayer(*o.Latency)
	}
	server, err := wire.New(inner, w)
	if err != nil {
		return nil, err
	}
	// The client caches containers by host for the whole process, so no two
	// engines may share one.
	host := "embedded-" + strings.ToLower(rand.Text()) + ".localhost"
	return &Engine{store: store, inner: inner, server: server, throttle: w.Throttle, key: o.Key, host: host}, nil
}

// Endpoint is the URL to give to the client. It leads nowhere but through
// Transport.
func (e *Engine) Endpoint() string { return "http://" + e.host + "/" }

// Key is the account key in base64.
func (e *Engine) Key() string { return e.key }

// RequestUnits is the sum of the charges of all requests for documents.
func (e *Engine) RequestUnits() float64 { return e.server.RequestUnits() }

// Requests is the number of requests for documents.
func (e *Engine) Requests() int64 { return e.server.Requests() }

// Scaled is the throughput that a container with autoscale is billed for in
// this hour: as much as the busiest second of its busiest physical partition
// took, and at least a tenth of the most that it scales to. It is 0 for a
// container without autoscale, and without Options.Throttle.
func (e *Engine) Scaled(database, container string) (float64, error) {
	c, err := e.inner.Container(database, container)
	if err != nil {
		return 0, err
	}
	most := float64(e.inner.Autoscale(c))
	if e.throttle == nil || most == 0 {
		return 0, nil
	}
	return most * max(0.1, e.throttle.Busiest(e.inner.Budgets(c, nil))), nil
}

// Sweep removes documents whose time to live is over. Nobody sees them any
// more even before; Sweep gives back the room they take. It returns how many
// it removed. The engine does not call it by itself.
//
// On a throttled account each removal costs what deleting the document would,
// and Sweep ends where a budget is not at least half full.
func (e *Engine) Sweep(ctx context.Context) (int, error) {
	if !e.beginRequest() {
		return 0, ErrClosed
	}
	defer e.requests.Done()
	return e.inner.Sweep(ctx, func(c *engine.Container, pk engine.Partition, charge engine.Charge) bool {
		return e.throttle == nil || e.throttle.Spare(e.inner.Budgets(c, c.RangeOf(pk))[0], int64(charge))
	})
}

// A Snapshot is the file of the account as it was at one moment.
type Snapshot struct {
	*disk.Snapshot
	done func()
}

// Close releases the snapshot. It is called once.
func (s *Snapshot) Close() error {
	defer s.done()
	return s.Snapshot.Close()
}

// TakeSnapshot is [disk.TakeSnapshot] of the account. Close of the engine waits until the
// snapshot is closed.
func (e *Engine) TakeSnapshot(ctx context.Context, meanwhile func() error) (*Snapshot, error) {
	if !e.beginRequest() {
		return nil, ErrClosed
	}
	s, err := disk.TakeSnapshot(ctx, e.store, meanwhile)
	if err != nil {
		e.requests.Done()
		return nil, err
	}
	return &Snapshot{s, e.requests.Done}, nil
}

// A Census is what Check counted.
type Census = engine.Census

// Check reads the whole account and tells report of everything that is
// damaged: documents that are not what was written, and indexes that do not
// fit to the documents. It works while requests are served.
func (e *Engine) Check(report func(problem string)) (Census, error) {
	if !e.beginRequest() {
		return Census{}, ErrClosed
	}
	defer e.requests.Done()
	return e.inner.Check(report)
}

// Handler serves the same account over HTTP. It advertises the host that a
// request came to.
func (e *Engine) Handler() http.Handler { return e.HandlerOf(Door{}) }

// HandlerOf serves the same account over HTTP through a door of its own.
func (e *Engine) HandlerOf(d Door) http.Handler {
	handler := e.server.Handler(d)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !e.beginRequest() {
			http.Error(w, `{"code":"ServiceUnavailable","message":"the engine is closed"}`, http.StatusServiceUnavailable)
			return
		}
		defer e.requests.Done()
		handler.ServeHTTP(w, r)
	})
}

// A Gateway decides which ids of documents can be used through a Door.
type Gateway = wire.Gateway

// The gateways. Azure accepts documents with ids that its routing gateway can
// never find again; Strict, the default, refuses to create those.
const (
	Strict  = wire.Strict
	Routing = wire.Routing
	Compute = wire.Compute
)

// A Door is what may differ between two ways into the same account.
type Door = wire.Door

// beginRequest counts a request as under way, unless the engine is closed.
func (e *Engine) beginRequest() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.requests.Add(1)
	}
	return !e.closed
}

// Close waits for the requests under way and closes the store. Closing twice
// does no harm.
func (e *Engine) Close() error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	e.requests.Wait()
	if closed {
		return nil
	}
	return e.store.Close()
}
