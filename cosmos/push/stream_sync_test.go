package push

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// Two nodes list sync cursors and append messages concurrently. No listed cursor is lost, and each append
// that begins after a cursor was listed returns this cursor.
func TestTwoNodesThatListCursors_LoseNone(t *testing.T) {
	r := newRig(t, embedded.Options{})
	stream := repositorytest.NewStream()
	const each = 8
	var g sync.WaitGroup
	for range 2 {
		node := r.node(Options{SegmentBytes: 2000})
		g.Go(func() {
			for range each {
				id := repositorytest.NewCursorID()
				if err := node.AddSync(t.Context(), stream, id); err != nil {
					t.Error(err)
				}
				appended, err := node.Append(t.Context(), stream, repositorytest.Messages(3))
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.Contains(appended[0].Sync, id) {
					t.Errorf("%s was listed, and the append has %v", id, appended[0].Sync)
				}
			}
		})
	}
	g.Wait()
	listed, err := r.node(Options{}).Sync(t.Context(), stream)
	require.NoError(t, err)
	require.Len(t, listed, 2*each)
}

// While AddSync adds a cursor to the list, another node adds a second cursor between the read and the write
// of the list. The list must contain both cursors.
func TestAddSync_KeepsACursorListedSinceTheRead(t *testing.T) {
	r := newRig(t, embedded.Options{})
	stream, first, second := repositorytest.NewStream(), repositorytest.NewCursorID(), repositorytest.NewCursorID()
	_, err := r.node(Options{}).Append(t.Context(), stream, repositorytest.Messages(1))
	require.NoError(t, err)
	other, isOvertaken := r.node(Options{}), false
	slow := New(r.account.ConnectBy(&hookTransport{r.line, func(req *http.Request) {
		if req.Method == http.MethodPut && !isOvertaken {
			isOvertaken = true
			require.NoError(t, other.AddSync(t.Context(), stream, second))
		}
	}}), r.content, Options{})
	require.NoError(t, slow.AddSync(t.Context(), stream, first))
	require.True(t, isOvertaken)
	listed, err := r.node(Options{}).Sync(t.Context(), stream)
	require.NoError(t, err)
	require.ElementsMatch(t, []domain.CursorID{first, second}, listed)
}

// In spite of faults and stale reads, the list of sync cursors is the one that its last caller requested.
func TestAListOfCursors_SurvivesEveryFault(t *testing.T) {
	for _, v := range variants {
		for _, fault := range append(faulty.CommonFaults(), faulty.Truncated) {
			t.Run(v.name+"/"+fault.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for n := 1; ; n++ {
						r := newRig(t, v.engine)
						stream, a, b := repositorytest.NewStream(), repositorytest.NewCursorID(), repositorytest.NewCursorID()
						node := r.node(v.opts)
						r.line.BreakOne(n, fault)
						succeeds := func(call func() error) {
							t.Helper()
							err := call()
							for again := 0; err != nil && fault == faulty.ForeignPrecondition && again < 3; again++ {
								err = call()
							}
							require.NoError(t, err, "call %d", n)
						}
						succeeds(func() error { return node.AddSync(t.Context(), stream, a) })
						succeeds(func() error { return node.AddSync(t.Context(), stream, b) })
						succeeds(func() error { return node.RemoveSync(t.Context(), stream, a) })
						succeeds(func() error { return node.AddSync(t.Context(), stream, b) })
						succeeds(func() error {
							listed, err := node.Sync(t.Context(), stream)
							if err == nil {
								require.Equal(t, []domain.CursorID{b}, listed)
							}
							return err
						})
						isBroken := r.line.Calls() >= n
						r.line.Break(nil)
						appended, err := r.node(v.opts).Append(t.Context(), stream, repositorytest.Messages(1))
						require.NoError(t, err)
						require.Equal(t, []domain.CursorID{b}, appended[0].Sync)
						if !isBroken {
							require.Greater(t, n, 5)
							return
						}
					}
				})
			})
		}
	}
}

// One node lists a cursor, and another node with an older head then appends. The append returns the
// cursor. Where reads may be stale, AddSync always writes, because the head that it read may be stale.
func TestAListOfCursors_IsNeverStale(t *testing.T) {
	isStale := false
	r := newRig(t, embedded.Options{Consistency: "Session", Stale: func() int {
		if isStale {
			isStale = false
			return 1
		}
		return 0
	}})
	stream, id := repositorytest.NewStream(), repositorytest.NewCursorID()
	first, second := r.node(Options{}), r.node(Options{})
	_, err := first.Append(t.Context(), stream, repositorytest.Messages(1))
	require.NoError(t, err)
	require.NoError(t, second.AddSync(t.Context(), stream, id))
	appended, err := first.Append(t.Context(), stream, repositorytest.Messages(1))
	require.NoError(t, err)
	require.Equal(t, []domain.CursorID{id}, appended[0].Sync, "the head that the first node has is older")

	require.NoError(t, second.RemoveSync(t.Context(), stream, id))
	isStale = true // this append reads the head that lists the cursor
	require.NoError(t, second.AddSync(t.Context(), stream, id))
	require.False(t, isStale)
	appended, err = first.Append(t.Context(), stream, repositorytest.Messages(1))
	require.NoError(t, err)
	require.Equal(t, []domain.CursorID{id}, appended[0].Sync)
}

// In a topic without sync subscriptions, an append sends one request. AddSync, which lists a cursor in
// the head of the topic, sends up to three requests.
func TestSyncCursors_CostNothingInATopicWithoutThem(t *testing.T) {
	r := newRig(t, embedded.Options{Pessimistic: true})
	stream, node := repositorytest.NewStream(), r.node(Options{})
	appends := func() (calls int, units float64) {
		before, spent := r.line.Calls(), r.engine.RequestUnits()
		_, err := node.Append(t.Context(), stream, repositorytest.Messages(1))
		require.NoError(t, err)
		return r.line.Calls() - before, r.engine.RequestUnits() - spent
	}
	r.line.Break(nil)
	appends()
	calls, units := appends()
	require.Equal(t, 1, calls)
	before := r.line.Calls()
	require.NoError(t, node.AddSync(t.Context(), stream, repositorytest.NewCursorID()))
	require.LessOrEqual(t, r.line.Calls()-before, 3)
	appends() // the first attempt is refused, because the cached head is older than the list
	calls, more := appends()
	require.Equal(t, 1, calls)
	require.Less(t, more, units+1)
}
