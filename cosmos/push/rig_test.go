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
	debug.SetGCPercent(400) // these tests open thousands of small stores
	if !raced {
		runtime.GOMAXPROCS(1) // in most of these tests, only one goroutine runs while others wait
	}
	goleak.VerifyTestMain(m)
}

// A rig is a store that any number of nodes share. The connection to it breaks on demand.
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

// node starts a node.
func (r *rig) node(opts Options) *Store { return New(r.account.Connect(), r.content, opts) }

func (r *rig) stores(s *Store) repositorytest.PushStores {
	return repositorytest.PushStores{Streams: s, Cursors: s, Shards: s, Nodes: s, Definitions: s, Parties: s, Watches: s, Resources: s, Changes: s, Content: r.content}
}

// conformance runs the suite on nodes with these options, on an account with this consistency.
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

// Segments end after a few entries, so every rule is tested across segments.
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
