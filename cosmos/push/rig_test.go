package push

import (
	"runtime"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // less garbage collection, because these tests open thousands of small stores
	if !raced {
		runtime.GOMAXPROCS(1) // in most of these tests, only one goroutine can run at a time
	}
	goleak.VerifyTestMain(m)
}

// A rig is a store that any number of nodes share. Tests can break the connections of its nodes.
type rig struct {
	t       testing.TB
	account *accounttest.Account
	engine  *embedded.Engine
	line    *faulty.Transport
	content repository.Content
}

func newRig(t testing.TB, opts embedded.Options) *rig {
	t.Helper()
	a := accounttest.New(t, opts, Containers())
	return &rig{t: t, account: a, engine: a.Engine, line: a.Transport, content: a.Content}
}

// node starts a node whose connection tests can break.
func (r *rig) node(opts Options) *Store { return New(r.account.Connect(), r.content, opts) }

func (r *rig) stores(s *Store) repositorytest.PushStores {
	return repositorytest.PushStores{Streams: s, Cursors: s, Shards: s, Nodes: s, Definitions: s, Parties: s, Watches: s, Resources: s, Changes: s, Content: r.content}
}

// conformance runs the conformance suite on nodes with the given options and account consistency.
func conformance(t *testing.T, consistency string, opts Options) {
	t.Parallel()
	repositorytest.RunPush(t, func(t *testing.T, o repositorytest.PushOptions) repositorytest.PushStores {
		r := newRig(t, embedded.Options{Clock: o.Clock, Consistency: consistency})
		opts := opts
		opts.Clock, opts.Retention, opts.StoreTraces = o.Clock, repositorytest.PushRetention, true
		return r.stores(r.node(opts))
	})
}

func TestConformance(t *testing.T) { conformance(t, "", Options{}) }

// Segments end after a few entries, so the suite tests every rule across segments.
func TestConformanceWithSmallSegments(t *testing.T) { conformance(t, "", Options{SegmentBytes: 100}) }

func TestRandomStreams_MatchTheMemoryStore(t *testing.T) {
	for _, segment := range []int64{0, 5000} {
		repositorytest.RandomStreams(t, func(_ *testing.T, o repositorytest.PushOptions) repositorytest.PushStores {
			return repositorytest.PushStores{Streams: memory.NewStreams(repositorytest.PushRetention, o.Clock)}
		}, func(t *testing.T, o repositorytest.PushOptions) repositorytest.PushStores {
			r := newRig(t, embedded.Options{Clock: o.Clock})
			return r.stores(r.node(Options{Clock: o.Clock, Retention: repositorytest.PushRetention, SegmentBytes: segment}))
		})
	}
}
