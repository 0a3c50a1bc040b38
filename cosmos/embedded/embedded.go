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

// FileFormat is the version of the file format in Options.Dir.
const FileFormat = engine.Format

// Options configure an Engine. The zero value configures an empty account in memory.
type Options struct {
	// Dir is the folder of the store. It is created if it does not exist, and must not be shared. If Dir is empty, the
	// data is in memory, and Close discards it.
	Dir string

	// Claim identifies the data folder that must contain the store in Dir. By default, the data folder is not checked.
	Claim datafolder.Claim

	// FileSystem opens the file in Dir. Default: the file system of the operating system.
	FileSystem disk.FileSystem

	// Unsynced confirms writes before they are on disk, for benchmarks that should not wait for the disk. Confirmed
	// writes survive the death of the process, but after a power failure the file may be unreadable. By default, writes
	// are synced.
	Unsynced bool

	// Version is the version of this program, which is stored in the file. If an older program cannot read the format,
	// its error names this version. By default, no version is stored.
	Version string

	// Key is the account key in base64. Default: WellKnownKey.
	Key string

	// Clock provides the time for _ts. Default: time.Now. The dates of requests are always compared with time.Now,
	// because clients set them with the system clock.
	Clock func() time.Time

	// Consistency is the default consistency level of the account: Strong, BoundedStaleness, Session, ConsistentPrefix
	// or Eventual. Default: Strong, or Session if Stale is set. With Strong and BoundedStaleness, point reads cost
	// twice as much.
	Consistency string

	// WriteRegions and ReadRegions are the names of regions in the account document, in this order. All regions have
	// the same endpoint. By default, there is one region for reads and writes.
	WriteRegions, ReadRegions []string

	// Stale simulates stale reads, for an account in memory. It is called once for each point read and query page, and
	// returns how many commits old the state should be (at most 64). Writes and batches use the newest state; a read
	// with a session token includes the writes of the session. Stale must be safe for concurrent use. By default, reads
	// are never stale.
	Stale func() int

	// Lag simulates stale reads by time. It returns how old the state of a read should be; the state is at most 64
	// commits old.
	Lag func() time.Duration

	// Committed is called with the changed documents after every commit and before the response, even if the client has
	// disconnected. Calls do not overlap and have the order of the commits. Because the next commit waits for the call,
	// Committed must be fast and must not write to the account.
	Committed func([]Change)

	// Collide simulates conflicts. It is called once for each write, batch and bulk request. If it returns true, the
	// request is not executed and fails with 449, as Azure does for concurrent writes of a document. The engine
	// executes writes serially, so it has no real conflicts. Collide must be safe for concurrent use. By default,
	// nothing conflicts.
	Collide func() bool

	// Throttle limits each physical partition to its share of the container's throughput. Requests above this share
	// fail with 429, as on Azure. Throttle uses Clock. By default, throughput only determines the number of physical
	// partitions.
	Throttle bool

	// Latency delays the responses to document requests. By default, there is no delay.
	Latency *Latency

	// QuerySteps limits the work for one page of a query. The limit for one document is 1/25 of QuerySteps. A step
	// takes 10 to 50 ns: it is an operator, a list item, a row, or 16 bytes of a value. At the limit, a query that
	// computes its results document by document ends the page early; any other query fails with 400. Default: 50
	// million.
	QuerySteps int64

	// QueryMemory limits the bytes of results, sort keys and groups that a query retains for a page. A query above the
	// limit fails with 400. Default: 128 MB.
	QueryMemory int64

	// RangeBytes is the size, in bytes of documents, at which a physical partition splits. Default: 50 GB.
	RangeBytes int64

	// StrictIndex matters if the indexing policy excludes the partition key. A query in one logical partition is then
	// charged for every document of the physical partition. Azure may find the logical partition without an index, but
	// a measured budget should not depend on that.
	StrictIndex bool

	// OrderByOnlyIndexed excludes documents without the ORDER BY property if the indexing policy includes this property
	// only by /*, as Azure did until 2022. By default, these documents are results and sort before null.
	OrderByOnlyIndexed bool

	// Pessimistic charges a query with a full point read for each document that it loads. The default is the much lower
	// charge that published query metrics suggest.
	Pessimistic bool
}

// A Latency is the delay of responses: Base, plus PerKB for each kilobyte of request and response, plus a random part
// of up to Jitter. A random few responses also take Slow. All randomness depends only on Seed.
type Latency = physics.Latency

// A Change is a changed document, as it is after a commit.
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
	requests sync.WaitGroup // requests counts running requests; it is incremented only while mu is held and closed is false
}

// Open opens the account in o.Dir. If Dir is set, Open starts a goroutine, which Close ends. If the folder or the file
// cannot be used, or if the disk is full, the error wraps an error of package disk.
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

// storePath describes the location of the store in errors: the path of its file, or that it is in memory.
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
	// azcosmos caches containers by host for the whole process, so each engine needs its own host name.
	host := "embedded-" + strings.ToLower(rand.Text()) + ".localhost"
	return &Engine{store: store, inner: inner, server: server, throttle: w.Throttle, key: o.Key, host: host}, nil
}

// Endpoint returns the URL of the account. It works only through Transport.
func (e *Engine) Endpoint() string { return "http://" + e.host + "/" }

// Key returns the account key in base64.
func (e *Engine) Key() string { return e.key }

// RequestUnits returns the sum of the charges of all requests for documents.
func (e *Engine) RequestUnits() float64 { return e.server.RequestUnits() }

// Requests returns the number of requests for documents.
func (e *Engine) Requests() int64 { return e.server.Requests() }

// Scaled returns the throughput that is billed for the current hour of an autoscale container: the use in the busiest
// second of the busiest physical partition, but at least a tenth of the maximum. It returns 0 if the container has no
// autoscale or Options.Throttle is not set.
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

// Sweep deletes expired documents and returns their number. It only frees space, because expired documents are already
// invisible. The caller decides when to sweep. With Options.Throttle, each deletion is charged as a delete, and Sweep
// stops when a budget is less than half full.
func (e *Engine) Sweep(ctx context.Context) (int, error) {
	if !e.beginRequest() {
		return 0, ErrClosed
	}
	defer e.requests.Done()
	return e.inner.Sweep(ctx, func(c *engine.Container, pk engine.Partition, charge engine.Charge) bool {
		return e.throttle == nil || e.throttle.Spare(e.inner.Budgets(c, c.RangeOf(pk))[0], int64(charge))
	})
}

// A Snapshot is the file of the account at one point in time.
type Snapshot struct {
	*disk.Snapshot
	done func()
}

// Close releases the snapshot. Call it exactly once.
func (s *Snapshot) Close() error {
	defer s.done()
	return s.Snapshot.Close()
}

// TakeSnapshot takes a snapshot of the account's store, as [disk.TakeSnapshot] does. Engine.Close waits until the
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

// A Census contains the totals that Check has counted.
type Census = engine.Census

// Check reads the whole account, and calls report for every document with a wrong checksum and every index that does
// not match its document. It can run while requests are served.
func (e *Engine) Check(report func(problem string)) (Census, error) {
	if !e.beginRequest() {
		return Census{}, ErrClosed
	}
	defer e.requests.Done()
	return e.inner.Check(report)
}

// Handler returns a handler that serves the account over HTTP. The account document refers to the host that the client
// has used.
func (e *Engine) Handler() http.Handler { return e.HandlerOf(EndpointOptions{}) }

// HandlerOf returns a handler with the options d.
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

// The gateways. Azure accepts some document ids that its routing gateway cannot address later. Strict, the default,
// refuses to create documents with such ids.
const (
	Strict  = wire.Strict
	Routing = wire.Routing
	Compute = wire.Compute
)

// EndpointOptions are the options that can differ between endpoints of one account.
type EndpointOptions = wire.EndpointOptions

// beginRequest counts a running request. It returns false if the engine is closed.
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
