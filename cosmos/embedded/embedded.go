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
	// Dir is the folder of the store. It is created if it does not exist, and must not be
	// shared. Without Dir the data is in memory and Close discards it.
	Dir string

	// Claim says which data folder the store in Dir must belong to. Default: the store is not
	// checked.
	Claim datafolder.Claim

	// FileSystem opens the file in Dir. Default: the file system of the operating system.
	FileSystem disk.FileSystem

	// Unsynced confirms writes before they are on the disk. Confirmed writes survive the death
	// of the process, but after a power failure the file may be unreadable. Unsynced is for
	// benchmarks: documents are not on the heap, and no request waits for the disk. Default:
	// writes are synced.
	Unsynced bool

	// Version is the version of the program. It is stored in the file: if an older program does
	// not know the format of the file, its error names this version. Default: no version is stored.
	Version string

	// Key is the account key in base64. Default: WellKnownKey.
	Key string

	// Clock provides the time for _ts. Default: time.Now. The dates of requests are always
	// checked against time.Now, because clients set them by the system's clock.
	Clock func() time.Time

	// Consistency is the account's default level: Strong, BoundedStaleness,
	// Session, ConsistentPrefix or Eventual. Default: Strong, or Session if
	// Stale is set. With Strong and BoundedStaleness a point read costs twice as much.
	Consistency string

	// WriteRegions and ReadRegions are the names of the regions that the account document lists,
	// in this order. The engine serves all regions. Default: one region, which has both roles.
	WriteRegions, ReadRegions []string

	// Stale simulates stale reads, in memory only. It is called once for each point read and
	// query page, and returns the age of the state that the read sees, in commits (at most
	// 64). Writes and batches see the newest state. A read with a session token sees
	// the writes of the session. Stale must be safe for concurrent use. Default: all reads are fresh.
	Stale func() int

	// Lag simulates stale reads by time: it returns the age of the state that a read sees,
	// limited to 64 commits.
	Lag func() time.Duration

	// Committed is called after every commit, before the response is sent, with the changed
	// documents. It is called even if the client has disconnected. Calls do not overlap, and
	// have the order of the commits. The next commit waits for a call to return: Committed must
	// be fast and must not write to the account. Default: no call.
	Committed func([]Change)

	// Collide simulates conflicts: it is called once for each write, batch and bulk request. If
	// it returns true, the request fails with 449 and is not executed. Azure returns 449 when
	// writes of the same document coincide. The writes of the engine are serial, so no other
	// conflicts occur. Collide must be safe for concurrent use. Default: no conflicts.
	Collide func() bool

	// Throttle limits every physical partition to its share of the container's throughput.
	// Requests beyond the share fail with 429, as on Azure. Throttle uses Clock. Default:
	// throughput is not limited, and determines only the number of physical partitions.
	Throttle bool

	// Latency delays requests for documents. Default: no delay.
	Latency *Latency

	// QuerySteps bounds the work of one page of a query. The work for one document is bounded by
	// a 25th of QuerySteps. A step is an operator, an item of a list, a row, or 16 bytes of a
	// value that is read or built, and takes 10 to 50 ns. At the limit, a query in which each
	// document has separate results continues on another page; any other query is refused with
	// 400. Default: 50 million.
	QuerySteps int64

	// QueryMemory bounds the bytes of results, sort keys and groups that a query
	// retains until its page is complete. A query beyond this bound is refused with 400.
	// Default: 128 MB.
	QueryMemory int64

	// RangeBytes is the number of bytes of documents at which a physical partition splits.
	// Default: 50 GB.
	RangeBytes int64

	// StrictIndex charges a query in one logical partition for every document of its physical
	// partition if the indexing policy does not include the partition key. A service may find
	// the partition without this index, but a budget that is measured with StrictIndex does not
	// depend on such an optimization.
	StrictIndex bool

	// OrderByOnlyIndexed excludes documents without the property of ORDER BY if the indexing
	// policy includes the property only by /*. Azure excluded them until 2022. Default: such
	// documents are results, and sort before null.
	OrderByOnlyIndexed bool

	// Pessimistic charges a query with a full point read for every document that it loads. Default:
	// the much lower charge that published query metrics suggest.
	Pessimistic bool
}

// A Latency describes the delay of responses: Base, PerKB for each kilobyte of request and
// response, and up to Jitter. Some responses also take Slow. The random parts depend on Seed
// only.
type Latency = physics.Latency

// A Change is a document after a commit.
type Change = engine.Change

// An Engine is one account. It is safe for concurrent use.
type Engine struct {
	store    disk.Store
	inner    *engine.Engine
	server   *wire.Server
	throttle *physics.Throttle // nil without Options.Throttle
	key      string
	host     string

	mu       sync.Mutex
	closed   bool
	requests sync.WaitGroup // running requests; requests are added only while mu is held and closed is false
}

// Open opens the account in o.Dir. If Dir is set, Open starts one goroutine, which Close ends. The
// error wraps an error of package disk if the folder is locked, cannot be written or is not a
// folder, if the file is damaged, or if the disk is full.
func Open(o Options) (*Engine, error) {
	if o.Stale != nil || o.Lag != nil {
		if o.Dir != "" {
			return nil, errors.New("embedded: Stale and Lag work in memory only; omit Dir, or omit Stale and Lag")
		}
		if o.Consistency == "Strong" {
			return nil, errors.New("embedded: a Strong account has no stale reads; omit Stale and Lag, or choose Session")
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

// storePath returns the path of the store's file for an error, or says that the store is in memory.
func storePath(dir string) string {
	if dir == "" {
		return "a store in memory"
	}
	return filepath.Join(dir, disk.FileName)
}

func openEngine(store disk.Store, o Options) (*Engine, error) {
	inner, err := engine.Open(store, engine.Options{
		Version: o.Version,
		Clock:   o.Clock, Stale: o.Stale, Lag: o.Lag, Pessimistic: o.Pessimistic, StrictIndex: o.StrictIndex, OrderByOnlyIndexed: o.OrderByOnlyIndexed, RangeBytes: o.RangeBytes, Committed: o.Committed,
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
	// The client caches containers by host for the whole process, so each engine needs a
	// different host.
	host := "embedded-" + strings.ToLower(rand.Text()) + ".localhost"
	return &Engine{store: store, inner: inner, server: server, throttle: w.Throttle, key: o.Key, host: host}, nil
}

// Endpoint returns the URL for the client. It works only through Transport.
func (e *Engine) Endpoint() string { return "http://" + e.host + "/" }

// Key returns the account key in base64.
func (e *Engine) Key() string { return e.key }

// RequestUnits returns the sum of the charges of all requests for documents.
func (e *Engine) RequestUnits() float64 { return e.server.RequestUnits() }

// Requests returns the number of requests for documents.
func (e *Engine) Requests() int64 { return e.server.Requests() }

// Scaled returns the throughput that is billed in this hour for a container with autoscale: the
// use in the busiest second of the busiest physical partition, or a tenth of the maximum if this is
// more. Scaled returns 0 for a container without autoscale, and without Options.Throttle.
func (e *Engine) Scaled(database, container string) (float64, error) {
	c, err := e.inner.Container(database, container)
	if err != nil {
		return 0, err
	}
	maximum := float64(e.inner.Autoscale(c))
	if e.throttle == nil || maximum == 0 {
		return 0, nil
	}
	return maximum * max(0.1, e.throttle.Busiest(e.inner.Budgets(c, nil))), nil
}

// Sweep removes expired documents and returns their number. Expired documents are invisible even
// before a Sweep; Sweep frees their space. The caller decides when to sweep.
//
// On a throttled account each removal is charged as a delete, and Sweep stops when a budget is
// less than half full.
func (e *Engine) Sweep(ctx context.Context) (int, error) {
	if !e.beginRequest() {
		return 0, ErrClosed
	}
	defer e.requests.Done()
	return e.inner.Sweep(ctx, func(c *engine.Container, pk engine.Partition, charge engine.Charge) bool {
		return e.throttle == nil || e.throttle.Spare(e.inner.Budgets(c, c.RangeOf(pk))[0], int64(charge))
	})
}

// A Snapshot is the file of the account in the state of one moment.
type Snapshot struct {
	*disk.Snapshot
	done func()
}

// Close releases the snapshot. Call it exactly once.
func (s *Snapshot) Close() error {
	defer s.done()
	return s.Snapshot.Close()
}

// TakeSnapshot is [disk.TakeSnapshot] of the account's store. Engine.Close waits until the snapshot
// is closed.
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

// A Census holds the totals that Check counted.
type Census = engine.Census

// Check reads the whole account and calls report for each damage: documents with a wrong
// checksum, and indexes that do not match the documents. It can run while requests are served.
func (e *Engine) Check(report func(problem string)) (Census, error) {
	if !e.beginRequest() {
		return Census{}, ErrClosed
	}
	defer e.requests.Done()
	return e.inner.Check(report)
}

// Handler returns a handler that serves the account over HTTP. The account document names the
// host of the request.
func (e *Engine) Handler() http.Handler { return e.HandlerOf(EndpointOptions{}) }

// HandlerOf returns a handler like Handler, with the settings of d.
func (e *Engine) HandlerOf(d EndpointOptions) http.Handler {
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

// A Gateway decides which document ids can be used through an endpoint.
type Gateway = wire.Gateway

// The gateways. Azure accepts documents with ids that its routing gateway cannot address
// afterwards; Strict, the default, refuses to create such documents.
const (
	Strict  = wire.Strict
	Routing = wire.Routing
	Compute = wire.Compute
)

// EndpointOptions are the settings in which two endpoints of one account may differ.
type EndpointOptions = wire.EndpointOptions

// beginRequest counts a running request, unless the engine is closed.
func (e *Engine) beginRequest() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.requests.Add(1)
	}
	return !e.closed
}

// Close waits for running requests and closes the store. Further calls have no effect.
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
