package push

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

// A variant configures the store and the simulated account of one run of a test.
type variant struct {
	name   string
	engine embedded.Options
	opts   Options
}

var variants = []variant{
	{name: "strong"},
	{name: "small segments on a session account", engine: embedded.Options{Consistency: "Session"}, opts: Options{SegmentBytes: 3000}},
}

// Eight messages are enough to fill a page and to produce two retries and two dead letters.
const lifeMessages = 8

func TestEveryCallBrokenOnceInEveryWay(t *testing.T) {
	for _, v := range variants {
		for i, fault := range append(faulty.CommonFaults(), faulty.Truncated) {
			for _, retries := range []int{-1, 0} {
				if raced && (i+retries)%3 != 0 {
					continue
				}
				name := v.name + "/" + fault.String() + "/retried by the caller"
				if retries == 0 {
					name = v.name + "/" + fault.String() + "/retried by the call"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { // in a synctest bubble, backoffs take no real time
						for n := 1; ; n++ {
							l := newLife(t, newRig(t, v.engine), lifeMessages, retries < 0, v.opts)
							node := l.startStore(retries)
							l.line.BreakOne(n, fault)
							again := 3
							if retries == 0 && fault != faulty.ForeignPrecondition {
								again = 0 // if the store retries its requests, no step of the life may fail after a single fault
							}
							require.NoError(t, l.runLife(node, again), "call %d", n)
							broken := l.line.Calls() >= n
							l.line.Break(nil)
							l.wantEnded(true)
							if !broken {
								require.Greater(t, n, 10)
								return
							}
						}
					})
				})
			}
		}
	}
}

func TestACrashBeforeEveryWrite_LosesNothing(t *testing.T) { crashEverywhere(t, faulty.RequestLost) }

func TestACrashAfterEveryWrite_LosesNothing(t *testing.T) { crashEverywhere(t, faulty.ReplyLostAfter) }

// crashEverywhere repeats the life of some messages. In run n, the node crashes at its nth request, with
// the fault last, and another node continues.
func crashEverywhere(t *testing.T, last faulty.Fault) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					l := newLife(t, newRig(t, v.engine), lifeMessages, true, v.opts)
					node := l.startStore(-1)
					l.line.CrashAt(n, last)
					err := l.runLife(node, 0)
					crashed := l.line.Fired() > 0
					l.line.Break(nil)
					if !crashed {
						require.NoError(t, err)
						return
					}
					require.Error(t, err)
					l.checkRules()
					require.NoError(t, l.runLife(l.startStore(0), 0), "after a crash at request %d", n)
					l.wantEnded(false)
				}
			})
		})
	}
}
