package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// Each test in this file creates a situation in which the protocol would fail without one of its rules.

// A tap is the connection of one node. A test can set a function that runs before each request.
type tap struct {
	next faulty.Doer

	mu     sync.Mutex
	before func(*http.Request) error
}

func (t *tap) Do(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	before := t.before
	t.mu.Unlock()
	if before != nil {
		if err := before(req); err != nil {
			return nil, err
		}
	}
	return t.next.Do(req)
}

func (t *tap) setBefore(before func(*http.Request) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = before
}

// tappedNode starts a node that uses a tap.
func (r *rig) tappedNode(opts Options) (*Repository, *tap) {
	r.t.Helper()
	line := &tap{next: r.line}
	db := r.account.ConnectBy(line)
	return New(db, r.content, opts), line
}

// isHeadReplacement reports whether req replaces the head of a recipient. The first replacement of a
// large Save stores the intent, and the second one is the commit.
func isHeadReplacement(req *http.Request) bool {
	return req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/docs/"+headID)
}

func isQuery(req *http.Request) bool { return req.Header.Get("x-ms-documentdb-query") != "" }

func isWrite(req *http.Request) bool { return req.Method != http.MethodGet && !isQuery(req) }

// atNth returns a function for setBefore that calls do at the n-th matching request.
func atNth(n int, matches func(*http.Request) bool, do func() error) func(*http.Request) error {
	var mu sync.Mutex
	seen := 0
	return func(req *http.Request) error {
		if !matches(req) {
			return nil
		}
		mu.Lock()
		seen++
		now := seen == n
		mu.Unlock()
		if now {
			return do()
		}
		return nil
	}
}

type trust struct {
	*testing.T
	*rig
	actor  domain.ActorID
	ledger repositorytest.Ledger
}

func newTrust(t *testing.T) *trust {
	return &trust{T: t, rig: newRig(t, embedded.Options{}), actor: repositorytest.NewActor()}
}

var small = Options{DrawerCapacity: 10, Exclusive: true}

func (s *trust) save(node *Repository, saver int, events []domain.Event) {
	saved, err := node.Save(context.Background(), s.actor, events)
	if assert.NoError(s, err) {
		assert.Equal(s, repository.Saved{Accepted: len(events)}, saved)
	}
	s.ledger.Saved(saver, events...)
}

// drainAll dequeues all bundles through a new node and requires that they contain the saved events.
func (s *trust) drainAll() {
	s.Helper()
	require.NoError(s, s.auditMailbox(s.actor))
	drained, err := repositorytest.Drain(context.Background(), s.stores(s.node(small, false)), s.actor, allGroups)
	require.NoError(s, err)
	require.NoError(s, s.ledger.Check(drained))
}

func TestACountAboveTheHeadsFillIsNotTrusted(t *testing.T) {
	s := newTrust(t)
	node, line := s.tappedNode(Options{DrawerCapacity: 10, Retries: -1})
	s.save(node, 0, repositorytest.Events(12, s.actor)) // fill one drawer and two slots of the next one

	var dead atomic.Bool // set at the commit
	commit := atNth(2, isHeadReplacement, func() error { dead.Store(true); return nil })
	line.setBefore(func(req *http.Request) error {
		if err := commit(req); err != nil || dead.Load() {
			return faulty.ErrLost
		}
		return nil
	})
	_, err := node.Save(context.Background(), s.actor, repositorytest.Events(3, s.actor))
	require.Equal(t, domain.Uncertain, domain.KindOf(err), "the Save died before its commit: %v", err)

	other := s.node(small, false)
	next, err := other.NextUnacknowledged(context.Background(), s.actor, allGroups)
	require.NoError(t, err)
	events, err := repositorytest.ReadEvents(context.Background(), next.Run)
	require.NoError(t, err)
	assert.Len(t, events, 12, "the last drawer says that it holds five, not two")

	s.save(other, 1, repositorytest.Events(4, s.actor))
	s.drainAll()
}

// A read returns a drawer before it was full. The drawer is before the last one, so its count must be confirmed by a write.
func TestAnUnsealedDrawer_IsNotTrustedAsItWasRead(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{DrawerCapacity: 10}, false)
	events := repositorytest.Events(12, s.actor) // one full drawer and two slots of the next one
	s.save(node, 0, events)
	key, c := cabinetKey(events[0].Cabinet()), node.beginCall("test")
	full, err := client.All[drawer](t.Context(), c.Query(node.db.cabinets, key, "SELECT * FROM c WHERE c.ordinal = 1"))
	require.NoError(t, err)
	require.Len(t, full, 1)
	require.Equal(t, 10, full[0].Count)

	old := *full[0]
	old.Sealed, old.Count = false, 7
	e, err := c.extentOf(t.Context(), key, &old)
	require.NoError(t, err)
	assert.Equal(t, 10, e.limit, "H1: the last three events must not be skipped")
	assert.True(t, e.sealed)
}

// A commit succeeds, but its reply is an error. Before the writer finds its own write in the head, a sweep changes the
// retention in the head, which keeps the id of the write.
func TestAWriter_ContinuesWithTheHeadThatIsStored(t *testing.T) {
	s := newTrust(t)
	node, line := s.tappedNode(Options{DrawerCapacity: 10})
	sweeper := s.node(Options{}, false)
	s.save(node, 0, repositorytest.Events(1, s.actor))

	var replacements atomic.Int32
	s.line.Break(func(_ int, req *http.Request) faulty.Fault {
		if isHeadReplacement(req) && replacements.Add(1) == 2 {
			return faulty.FailedAfter
		}
		return faulty.None
	})
	readsBack := func(req *http.Request) bool {
		return req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/docs/"+headID) && replacements.Load() > 2
	}
	line.setBefore(atNth(1, readsBack, func() error {
		var ops azcosmos.PatchOperations
		ops.AppendSet("/fence", "of the sweep")
		return sweeper.beginCall("test").Patch(t.Context(), sweeper.db.catalog, s.actor.String(), headID, ops, &struct{}{})
	}))
	s.save(node, 0, repositorytest.Events(1, s.actor))
	s.save(node, 0, repositorytest.Events(1, s.actor))
	h, err := sweeper.beginCall("test").readHead(t.Context(), s.actor)
	require.NoError(t, err)
	assert.Equal(t, "of the sweep", h.Fence)
	s.drainAll()
}

func TestACommitBeatsARollbackThatHasNotClaimedYet(t *testing.T) {
	s := newTrust(t)
	slow, slowLine := s.tappedNode(small)
	s.save(slow, 0, repositorytest.Events(2, s.actor))
	commits, mayCommit := make(chan struct{}), make(chan struct{})
	slowLine.setBefore(atNth(2, isHeadReplacement, func() error { close(commits); <-mayCommit; return nil }))
	other, otherLine := s.tappedNode(small)
	undoes, mayUndo := make(chan struct{}), make(chan struct{})
	otherLine.setBefore(atNth(1, isWrite, func() error { close(undoes); <-mayUndo; return nil }))

	var saves sync.WaitGroup
	saves.Go(func() { s.save(slow, 0, repositorytest.Events(3, s.actor)) })
	<-commits
	saved := make(chan struct{})
	go func() {
		defer close(saved)
		s.save(other, 1, repositorytest.Events(4, s.actor))
	}()
	<-undoes // the rollback has read the intent and is about to send its first write
	close(mayCommit)
	saves.Wait()
	close(mayUndo)
	<-saved
	s.drainAll()
}

func TestAWatermarkAboveAnIntent_DoesNotProveItsCommit(t *testing.T) {
	s := newTrust(t)
	slow, slowLine := s.tappedNode(small)
	s.save(slow, 0, repositorytest.Events(2, s.actor))
	commits, mayCommit := make(chan struct{}), make(chan struct{})
	slowLine.setBefore(atNth(2, isHeadReplacement, func() error { close(commits); <-mayCommit; return nil }))

	var saves sync.WaitGroup
	saves.Go(func() { s.save(slow, 0, repositorytest.Events(3, s.actor)) })
	<-commits
	s.save(s.node(small, false), 1, repositorytest.Events(4, s.actor)) // this Save rolls back the slow Save and raises the watermark above its numbers
	close(mayCommit)
	saves.Wait()
	s.drainAll()
}

func TestAnIndexFromStaleReads_IsNotUsed(t *testing.T) {
	for age := range 19 {
		for reads := range int32(8) {
			t.Run(fmt.Sprintf("%d reads are %d commits old", reads, age), func(t *testing.T) {
				saveAfterStaleReads(t, age, reads)
			})
		}
	}
}

// saveAfterStaleReads sends saved events again to a node with an empty memory. The node reads the current
// head and stale drawers.
func saveAfterStaleReads(t *testing.T, age int, reads int32) {
	var left atomic.Int32
	s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Stale: func() int {
		if left.Add(-1) >= 0 {
			return age
		}
		return 0
	}})}
	events := repositorytest.Events(6, s.actor)
	tiny := Options{DrawerCapacity: 2, Exclusive: true}
	writer := s.node(tiny, false)
	for _, e := range events {
		_, err := writer.Save(context.Background(), s.actor, []domain.Event{e})
		require.NoError(t, err)
	}
	s.ledger.Saved(0, events...)

	node, line := s.tappedNode(tiny)
	line.setBefore(atNth(1, isQuery, func() error { left.Store(reads); return nil }))
	saved, err := node.Save(context.Background(), s.actor, events)
	require.NoError(t, err)
	assert.Equal(t, repository.Saved{Duplicates: len(events)}, saved)
	left.Store(0)
	s.drainAll()
}

// A drawer has free slots, and all its events are acknowledged. A Save fills this drawer and the next one,
// and adds an event to a second cabinet. A Peek that reads stale catalog entries still returns the first
// saved event.
func TestStaleEntries_DoNotReorderCabinets(t *testing.T) {
	for age := range 12 {
		t.Run(fmt.Sprintf("pointers are %d commits old", age), func(t *testing.T) { peekWithStaleEntries(t, age) })
	}
}

func peekWithStaleEntries(t *testing.T, age int) {
	var now atomic.Int32
	s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Stale: func() int { return int(now.Load()) }})}
	tiny, x, y := Options{DrawerCapacity: 2}, repositorytest.WithContentType("x"), repositorytest.WithContentType("y")
	writer := s.node(tiny, true)
	s.save(writer, 0, repositorytest.Events(1, s.actor, x))
	_, err := repositorytest.Drain(t.Context(), s.stores(writer), s.actor, allGroups)
	require.NoError(t, err)
	writer.AwaitHints(t.Context(), s.actor)
	events := []domain.Event{repositorytest.Event(s.actor, x), repositorytest.Event(s.actor, y), repositorytest.Event(s.actor, x)}
	_, err = writer.Save(t.Context(), s.actor, events)
	require.NoError(t, err)

	node, line := s.tappedNode(tiny)
	line.setBefore(func(req *http.Request) error {
		now.Store(0)
		if isQuery(req) && strings.Contains(req.URL.Path, "/colls/catalog/") {
			now.Store(int32(age))
		}
		return nil
	})
	next, err := node.NextUnacknowledged(t.Context(), s.actor, allGroups)
	require.NoError(t, err)
	now.Store(0)
	found, err := repositorytest.ReadEvents(t.Context(), next.Run)
	require.NoError(t, err)
	require.Equal(t, events[0].ID, found[0].ID)
}
