package push

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// TestTwoNodesOnOneCursor_LoseNothing runs two nodes that append to a stream and take over its cursor
// from each other. Reads are up to four commits old, requests and replies are lost, and nodes crash.
func TestTwoNodesOnOneCursor_LoseNothing(t *testing.T) {
	seeds := 50
	switch {
	case raced:
		seeds = 10
	case triesEveryCase:
		seeds = 500
	}
	var mu sync.Mutex
	seen := make(map[string]int)
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := randomLives(t, uint64(seed))
					mu.Lock()
					defer mu.Unlock()
					for what, n := range s {
						seen[what] += n
					}
				})
			})
		}
	})
	t.Log(seen)
	for _, what := range []string{"fenced", "failed", "ended", "duplicate"} {
		require.Positive(t, seen[what], "it happens that a node is %s", what)
	}
}

func randomLives(t *testing.T, seed uint64) (seen map[string]int) {
	source := &lockedRand{source: rand.New(rand.NewPCG(seed, 7))}
	chance := source.intn
	var calm bool
	stale := chance(2) == 0
	engine := embedded.Options{}
	if stale {
		engine.Stale = func() int {
			if calm || chance(3) > 0 {
				return 0
			}
			return chance(5)
		}
	}
	opts := Options{Random: source.uint64, SegmentBytes: []int64{0, 1000, 2500}[chance(3)]}
	first := newLife(t, newRig(t, engine), 30, true, opts)
	for i := range first.messages {
		first.messages[i].Payload = fmt.Appendf(nil, "%0*d", 10+chance(900), i)
	}
	second := *first
	lives := []*life{first, &second}
	stores := []*Store{first.startStore(0), second.startStore(0)}
	require.NoError(t, first.createCursor(stores[0]))
	if stale { // Load requires that the new cursor is visible
		for range 8 {
			_, err := stores[0].Append(context.Background(), repositorytest.NewStream(), repositorytest.Messages(1))
			require.NoError(t, err)
		}
	}
	first.line.Break(func(int, *http.Request) faulty.Fault {
		if calm || chance(8) > 0 {
			return faulty.None
		}
		all := faulty.CommonFaults()
		return all[chance(len(all))]
	})
	seen = make(map[string]int)
	note := func(err error) {
		switch domain.KindOf(err) {
		case domain.Conflict:
			seen["fenced"]++
		case domain.Busy, domain.Unavailable, domain.Uncertain:
			seen["failed"]++
		default:
			require.NoError(t, err)
		}
	}
	sent := 0
	accepted := make(map[string]bool) // payloads of accepted messages without an id
	for range 60 {
		i := chance(2)
		switch op := chance(12); {
		case op < 4: // resend some messages
			from := max(sent-chance(3), 0)
			to := min(from+1+chance(4), len(first.messages))
			appended, err := stores[i].Append(context.Background(), first.stream, first.messages[from:to])
			note(err)
			if err == nil {
				sent = max(sent, to)
			}
			for _, a := range appended {
				require.NotEqual(t, repository.AppendConflict, a.Outcome)
				if a.Outcome == repository.AppendDuplicate {
					seen["duplicate"]++
				}
			}
		case op == 6:
			m := repositorytest.Messages(1)
			m[0].Attributes["n"] = fmt.Sprint("once ", len(accepted))
			m[0].Payload = fmt.Appendf(nil, "%0*d", 10+chance(900), 0)
			_, err := stores[i].Append(context.Background(), first.stream, m)
			note(err)
			accepted[m[0].Attributes["n"]] = err == nil
		case op == 4:
			first.clock.now = first.clock.now.Add(time.Duration(chance(90)) * time.Second)
		case op == 5 && chance(3) == 0:
			stores[i] = lives[i].startStore([]int{0, -1}[chance(2)])
			seen["ended"]++
		default:
			_, err := lives[i].runStep(stores[i])
			note(err)
		}
		if t.Failed() {
			return seen
		}
	}
	calm = true
	first.line.Break(nil)
	last := first.startStore(0)
	require.NoError(t, first.runLife(last, 0))

	all, err := repositorytest.ReadAll(context.Background(), first.stores(last), first.stream, domain.Position{})
	require.NoError(t, err)
	ids := make(map[string]bool)
	dead := 0
	for _, e := range all {
		id := e.ID
		if id == "" {
			id = e.Attributes["n"]
		}
		require.False(t, ids[id], "%s is in the stream once", id)
		ids[id] = true
		if e.Position.Number%4 == 3 {
			dead++
		}
	}
	for i := range first.messages {
		require.True(t, ids[first.messages[i].ID], "P1")
	}
	for id, is := range accepted {
		require.True(t, ids[id] || !is, "P1: %s was accepted", id)
	}
	first.checkRules()
	s := first.cursor.Standing()
	require.EqualValues(t, len(all), s.Counters.Triggered, "P1")
	require.EqualValues(t, dead, s.Counters.Errored, "P1")
	require.EqualValues(t, len(all)-dead, s.Counters.Delivered, "P1")
	require.Zero(t, s.Outstanding())
	require.LessOrEqual(t, int(s.Counters.Attempts), *first.calls, "P8: an attempt is counted once")
	return seen
}

// A lockedRand is a seeded random source that several goroutines may use.
type lockedRand struct {
	mu     sync.Mutex
	source *rand.Rand
}

func (l *lockedRand) intn(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.IntN(n)
}

func (l *lockedRand) uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}

func TestCallersOfAProcess_AppendTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		node := r.node(Options{})
		stream := repositorytest.NewStream()
		_, err := node.Append(t.Context(), stream, repositorytest.Messages(1))
		require.NoError(t, err)
		r.line.Break(func(int, *http.Request) faulty.Fault {
			<-time.After(time.Millisecond)
			return faulty.None
		})
		var g sync.WaitGroup
		for range 50 {
			g.Go(func() {
				_, err := node.Append(t.Context(), stream, repositorytest.Messages(1))
				if err != nil {
					t.Error(err)
				}
			})
		}
		g.Wait()
		require.LessOrEqual(t, r.line.Calls(), 2)
		all, err := repositorytest.ReadAll(t.Context(), r.stores(node), stream, domain.Position{})
		require.NoError(t, err)
		require.Len(t, all, 51)
	})
}
