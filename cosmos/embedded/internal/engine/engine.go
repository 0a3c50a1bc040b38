package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// Options configure an Engine.
type Options struct {
	Clock              func() time.Time
	Stale              func() int           // returns how many commits old a read should be; nil: reads are never stale
	Lag                func() time.Duration // returns how old the state of a read should be; nil: reads are never stale
	Pessimistic        bool                 // charge queries with a point read for each loaded document
	StrictIndex        bool                 // charge a query in a logical partition for a scan if the partition key is not indexed
	OrderByOnlyIndexed bool                 // documents without the ORDER BY path are not results if the policy includes the path only by /*
	RangeBytes         int64                // maximum bytes of documents in a physical partition; 0: 50 GB
	Committed          func([]Change)       // called with the changes of each commit, in the order of the commits; may be nil
	Limits             query.Limits         // limits of a query page; zero: query.DefaultLimits
	Version            string               // version of the program, stored with the format of a new store
}

// A Change is a changed document, as it is after a commit.
type Change struct {
	Database, Container string
	Partition           Partition // an opaque value; equal partition keys have equal values
	ID                  string
	JSON                []byte // must not be modified; nil if the document was deleted
}

// An Engine is one account. It is safe for concurrent use and starts no goroutine.
type Engine struct {
	store            disk.Store
	clock            func() time.Time
	stale            func() int
	pessimistic      bool
	strictIndex      bool
	orderOnlyIndexed bool
	lag              func() time.Duration
	committed        func([]Change)
	lagging          sync.Mutex
	commits          []time.Time // times of the last commits; guarded by lagging
	identity         uint64
	rangeBytes       int64
	limits           query.Limits
	sizes            sync.Map // container number to *atomic.Int64: the bytes of the container's documents

	changing sync.Mutex   // locked while a database or container changes
	mu       sync.RWMutex // guards catalog; never locked during a transaction
	catalog  map[string]*Database
}

// Open reads the databases and containers from a store. The caller must close the store.
func Open(store disk.Store, o Options) (*Engine, error) {
	e := &Engine{
		store: store, clock: o.Clock, stale: o.Stale, lag: o.Lag, committed: o.Committed, pessimistic: o.Pessimistic, strictIndex: o.StrictIndex, orderOnlyIndexed: o.OrderByOnlyIndexed, catalog: map[string]*Database{},
		rangeBytes: cmp.Or(o.RangeBytes, maxRangeBytes), limits: cmp.Or(o.Limits, query.DefaultLimits),
	}
	// A crash after Prepare leaves a store with a format but without an identity. The next Open adds the identity.
	if err := storeFormat(o.Version).Prepare(context.Background(), store); err != nil {
		return nil, err
	}
	err := store.Update(context.Background(), func(tx disk.Tx) error {
		if tx.Get(identityKey) == nil {
			identity := make([]byte, 8)
			_, _ = rand.Read(identity) // never fails
			tx.Put(identityKey, identity)
		}
		e.identity = decodeNumber(tx.Get(identityKey))
		return e.loadCatalog(tx)
	})
	return e, err
}

// sizeOfContainer returns the counter for the bytes of a container's documents.
func (e *Engine) sizeOfContainer(container uint32) *atomic.Int64 {
	n, _ := e.sizes.LoadOrStore(container, new(atomic.Int64))
	return n.(*atomic.Int64)
}

// Size returns the total bytes of the documents in a container.
func (e *Engine) Size(c *Container) int64 { return e.sizeOfContainer(c.number).Load() }

// formatETag returns the quoted etag of the write number version.
func (e *Engine) formatETag(version uint64) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], e.identity)
	binary.BigEndian.PutUint64(b[8:], version)
	var t [38]byte
	t[0], t[37] = '"', '"'
	hex.Encode(t[1:], b[0:4])
	t[9] = '-'
	hex.Encode(t[10:], b[4:6])
	t[14] = '-'
	hex.Encode(t[15:], b[6:8])
	t[19] = '-'
	hex.Encode(t[20:], b[8:10])
	t[24] = '-'
	hex.Encode(t[25:], b[10:16])
	return string(t[:])
}

// A Consistency determines how new the state of a read must be.
type Consistency struct {
	Session uint64 // number of a write that the read must include; 0 means none
	Double  bool   // the read costs twice as much, as with the levels Strong and BoundedStaleness
}

// viewState runs fn on a state that a read with this consistency may use.
func (e *Engine) viewState(c Consistency, fn func(disk.Reader) error) error {
	back := 0
	if e.stale != nil {
		back = max(0, e.stale())
	}
	if e.lag != nil {
		back = max(back, e.commitsSince(e.clock().Add(-e.lag())))
	}
	for {
		tooOld := false
		err := e.store.ViewPast(back, func(r disk.Reader) error {
			if decodeNumber(r.Get(counterKey)) < c.Session {
				tooOld = true
				return nil
			}
			return fn(r)
		})
		switch {
		case err != nil || !tooOld:
			return err
		case back == 0:
			return &Error{Status: 404, SubStatus: 1002, Message: "The read session is not available for the input session token.", Charge: chargeOfMiss}
		}
		back /= 2
	}
}
