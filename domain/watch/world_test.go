package watch_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hubURL = "https://hub.example.org"

// A world contains an in-memory store for several nodes, and receivers of watches. Tests use it in
// a synctest bubble.
type world struct {
	*testing.T
	streams   *memory.Streams
	cursors   *memory.Cursors
	watches   *memory.Watches
	resources *memory.Resources
	policy    domain.Policy
	owner     domain.ActorID
	began     time.Time

	mu     sync.Mutex
	status map[string]int // HTTP status with which each callback responds; default 200; noAnswer: no response
	calls  []call
}

// noAnswer is the status of a callback that cannot be reached, or that responds too late.
const noAnswer = -1

// A call records one call to the callback of a watch.
type call struct {
	callback string
	event    domain.ChangeEvent
	version  int64
	attempts int
	after    time.Duration // time since the world was created
}

func newWorld(t *testing.T) *world {
	owner, err := domain.ParseActorID("owner")
	require.NoError(t, err)
	w := &world{T: t, policy: domain.WatchPolicy(time.Hour, 5), owner: owner, began: time.Now(), status: make(map[string]int)}
	w.streams, w.cursors, w.resources = memory.NewStreams(repository.MessageRetention, time.Now), memory.NewCursors(time.Now), memory.NewResources(time.Now)
	w.watches = memory.NewWatches(w.cursors)
	return w
}

// A node serves a world's watches until stop is called.
type node struct {
	*watch.Service
	world *world
	stop  func()
	stale *repository.Watch // watch that stale reads return; nil: reads return the current watch
}

// Receiver implements [delivery.Receivers].
func (n *node) Receiver(ctx context.Context, cursor domain.CursorID, isCurrent bool) (delivery.Receiver, error) {
	found, err := n.WatchOf(ctx, cursor, isCurrent)
	if n.stale != nil && !isCurrent {
		found, err = n.stale, nil
	}
	if err != nil {
		return delivery.Receiver{}, err
	}
	return delivery.Receiver{Policy: n.world.policy, Target: found.CallbackURL}, nil
}

// Call implements [delivery.Caller].
func (n *node) Call(_ context.Context, c delivery.Call) domain.Answer {
	change, err := domain.ChangeOf(&c.Entry.Message, c.Entry.Position.Number)
	if err != nil {
		panic(err)
	}
	w := n.world
	w.mu.Lock()
	defer w.mu.Unlock()
	callback := c.Receiver.Target.(string)
	w.calls = append(w.calls, call{callback, change.Event, change.Version, c.Attempt, time.Since(w.began).Round(time.Second)})
	switch status := w.status[callback]; status {
	case 0:
	case noAnswer:
		return domain.Answer{Error: "the receiver refused the connection"}
	default:
		return domain.Answer{Status: status}
	}
	return domain.Answer{Status: http.StatusOK}
}

// startNode starts a node. Unless hasRelay is set, the node does not publish changes.
func (w *world) startNode(hasRelay bool) *node { return w.startOn(w.cursors, nil, hasRelay) }

// startOn starts a node that uses cursors. If nodes is not nil, the node shares the cursors with
// other nodes.
func (w *world) startOn(cursors repository.Cursors, nodes repository.Nodes, hasRelay bool) *node {
	n := &node{world: w}
	base, err := domain.ParseResourceBase(hubURL)
	require.NoError(w, err)
	engine := delivery.New(delivery.Ports{Streams: w.streams, Cursors: cursors, Shards: w.cursors, Nodes: nodes, Receivers: n, Caller: n}, delivery.Options{})
	relay := watch.NewRelay(w.resources, w.streams, engine.Published, watch.RelayOptions{})
	n.Service = watch.New(watch.Ports{Watches: w.watches, Resources: w.resources, Changes: w.resources, Cursors: w.cursors, Streams: w.streams}, watch.Options{
		Base: base, Created: engine.Created, Changed: engine.Changed,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = engine.Run(ctx) })
	if hasRelay {
		running.Go(func() { _ = relay.Run(ctx) })
	}
	n.stop = func() { cancel(); running.Wait() }
	synctest.Wait()
	return n
}

func (w *world) answer(callback string, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status[callback] = status
}

// takeCalls returns the calls since the previous takeCalls.
func (w *world) takeCalls() []call {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// createWatch creates a watch on a document, which calls callback.
func (n *node) createWatch(document, callback string) domain.WatchID {
	n.world.Helper()
	id, err := n.Create(n.world.Context(), n.world.owner, watch.Draft{Resource: hubURL + "/v1/resources/" + document, CallbackURL: callback, MayBeAbsent: true})
	require.NoError(n.world, err)
	synctest.Wait()
	return id
}

func (w *world) documentNamed(name string) domain.Resource {
	r, err := domain.Kept(name)
	require.NoError(w, err)
	return r
}

func (n *node) putDocument(document string) {
	n.world.Helper()
	_, _, err := n.PutDocument(n.world.Context(), n.world.documentNamed(document), []byte(`{}`), watch.Condition{})
	require.NoError(n.world, err)
}

func (n *node) deleteDocument(document string) {
	n.world.Helper()
	require.NoError(n.world, n.DeleteDocument(n.world.Context(), n.world.documentNamed(document), watch.Condition{}))
}

// requireCounters waits a minute, and then requires that a watch's counters are want.
func (n *node) requireCounters(id domain.WatchID, want watch.Counters) {
	n.world.Helper()
	sleep(time.Minute) // the cursor stores with a delay that entries do not match
	found, err := n.Get(n.world.Context(), n.world.owner, id)
	require.NoError(n.world, err)
	require.Equal(n.world, want, found.Counters)
}

func inBubble(t *testing.T, name string, test func(w *world)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(newWorld(t)) })
	})
}

const one, two = "https://example.com/1", "https://example.com/2"
