// Package deliverytest tests the promises of delivery engines over any stores: the suite [Run],
// and the [World] in which its cases are written.
package deliverytest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A World has stores, receivers and the nodes that call them. It must be used in a synctest bubble.
type World struct {
	testing.TB
	Stores repositorytest.PushStores
	Stream domain.StreamName
	Clock  *Clock
	// Shared makes nodes share the shards. Otherwise each node owns all of them.
	Shared bool

	open func(clock *Clock) repositorytest.PushStores

	mu        sync.Mutex
	receivers map[domain.CursorID]*Receiver
	nodes     int
	owners    map[domain.CursorID]string // the incarnation that loaded the cursor last
	takeovers map[domain.CursorID]int    // number of loads by a different node than the previous load
	loadCount int                        // number of loads of cursors, including failed ones
	requests  int                        // number of requests to replay
	watches   int                        // number of ids of watches that were tried
	changes   map[domain.CursorID]int64  // number of changes that Note has recorded
}

// A Clock returns the time of the bubble plus an offset that a test sets.
type Clock struct{ ahead atomic.Int64 }

// Now returns the time.
func (c *Clock) Now() time.Time { return time.Now().UTC().Add(time.Duration(c.ahead.Load())) }

// Set makes the clock d ahead of the clock of the bubble.
func (c *Clock) Set(d time.Duration) { c.ahead.Store(int64(d)) }

// NewWorld returns a World without receivers.
func NewWorld(t testing.TB, open func(clock *Clock) repositorytest.PushStores) *World {
	w := &World{TB: t, Clock: &Clock{}, Stream: repositorytest.NewStream(), open: open}
	w.changes = make(map[domain.CursorID]int64)
	w.receivers, w.owners, w.takeovers = make(map[domain.CursorID]*Receiver), make(map[domain.CursorID]string), make(map[domain.CursorID]int)
	w.Stores = open(w.Clock)
	return w
}

// anotherWorld returns an empty World with new stores.
func (w *World) anotherWorld() *World { return NewWorld(w.TB, w.open) }

// A Receiver answers calls and records them.
type Receiver struct {
	ID          domain.CursorID // zero: Add chooses one
	Policy      domain.Policy
	Concurrency int
	MaxRate     float64 // calls per second; 0: no limit
	IsOrdered   bool
	Matches     func(*repository.Entry) bool
	IsPaused    bool // the owner has paused the receiver; see World.Change
	Resumed     int
	// Answer returns the answer to a call; nil: always 200. It may block.
	Answer func(ctx context.Context, c delivery.Call) domain.Answer

	mu       sync.Mutex
	calls    []RecordedCall
	underway int
	most     int
}

// RecordedCall is a recorded call of a receiver.
type RecordedCall struct {
	Entry   domain.EntryID
	Attempt int
	At      time.Time // by the clock of the bubble
	Status  int
	Ended   bool // the call was answered
}

// Calls returns the calls of a receiver so far.
func (r *Receiver) Calls() []RecordedCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]RecordedCall(nil), r.calls...)
}

// Taken returns the number of successful calls for each entry.
func (r *Receiver) Taken() map[domain.EntryID]int {
	taken := make(map[domain.EntryID]int)
	for _, c := range r.Calls() {
		if c.Status/100 == 2 {
			taken[c.Entry]++
		}
	}
	return taken
}

// MaxConcurrent returns the maximum number of calls that were under way at the same time.
func (r *Receiver) MaxConcurrent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

// Status returns an Answer function that always answers with status.
func Status(status int) func(context.Context, delivery.Call) domain.Answer {
	return func(context.Context, delivery.Call) domain.Answer { return domain.Answer{Status: status} }
}

// After returns an Answer function that answers after d, or fails if the call is ended before
// that.
func After(d time.Duration, status int) func(context.Context, delivery.Call) domain.Answer {
	return func(ctx context.Context, _ delivery.Call) domain.Answer {
		select {
		case <-time.After(d):
			return domain.Answer{Status: status}
		case <-ctx.Done():
			return domain.Answer{Error: ctx.Err().Error()}
		}
	}
}

// Add creates a receiver that begins at the first message of the stream.
func (w *World) Add(r *Receiver) *Receiver {
	w.Helper()
	if r.ID == (domain.CursorID{}) {
		r.ID = repositorytest.NewCursorID()
	}
	w.mu.Lock()
	w.receivers[r.ID] = r
	w.mu.Unlock()
	require.NoError(w, w.Stores.Cursors.Create(context.Background(), r.ID, domain.Standing{Stream: w.Stream}))
	return r
}

// Change pauses or resumes a receiver, and notifies n unless n is nil.
func (w *World) Change(n *Node, r *Receiver, isPaused bool) {
	w.mu.Lock()
	r.IsPaused = isPaused
	if !isPaused {
		r.Resumed++
	}
	w.mu.Unlock()
	if n != nil {
		n.Changed(r.ID)
	}
}

// Note records in the entry of a receiver's cursor that the receiver has changed.
func (w *World) Note(r *Receiver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes[r.ID]++
}

// Remove deletes a receiver.
func (w *World) Remove(r *Receiver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.receivers, r.ID)
}

// Receiver implements [delivery.Receivers].
func (w *World) Receiver(_ context.Context, id domain.CursorID, _ bool) (delivery.Receiver, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.receivers[id]
	if r == nil {
		return delivery.Receiver{}, domain.Errorf(domain.NotFound, "there is no receiver %s", id)
	}
	return delivery.Receiver{
		Policy: r.Policy, Concurrency: r.Concurrency, MaxRate: r.MaxRate, IsOrdered: r.IsOrdered,
		Matches: r.Matches, IsPaused: r.IsPaused, Resumed: r.Resumed, Compile: compileEvery,
	}, nil
}

// Call implements [delivery.Caller].
func (w *World) Call(ctx context.Context, c delivery.Call) domain.Answer {
	w.mu.Lock()
	r := w.receivers[c.Cursor]
	w.mu.Unlock()
	if r == nil {
		return domain.Answer{Error: "the receiver was deleted"}
	}
	r.mu.Lock()
	r.underway++
	r.most = max(r.most, r.underway)
	i := len(r.calls)
	r.calls = append(r.calls, RecordedCall{Entry: c.Entry.Position.EntryID, Attempt: c.Attempt, At: time.Now().UTC()})
	r.mu.Unlock()
	a := domain.Answer{Status: 200}
	if r.Answer != nil {
		a = r.Answer(ctx, c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underway--
	r.calls[i].Status, r.calls[i].Ended = a.Status, true
	return a
}

// A Node is an engine that runs.
type Node struct {
	*delivery.Engine
	world       *World
	incarnation string
	cancel      context.CancelFunc
	ended       chan struct{}
	line        *line
}

// Start starts a node with an engine over the ports of the World. Without a Clock in opts, the
// engine uses the clock of the World.
func (w *World) Start(opts delivery.Options) *Node {
	w.mu.Lock()
	w.nodes++
	opts.Incarnation = fmt.Sprintf("node-%d", w.nodes)
	w.mu.Unlock()
	if opts.Clock == nil {
		opts.Clock = w.Clock.Now
	}
	n := &Node{world: w, ended: make(chan struct{}), line: &line{}}
	n.incarnation = opts.Incarnation
	ports := delivery.Ports{
		Streams: lineStreams{w.Stores.Streams, n.line}, Cursors: lineCursors{w.Stores.Cursors, n.line, w},
		Shards: lineShards{w.Stores.Shards, w, n.line}, Receivers: w, Caller: lineCaller{w, n},
	}
	if w.Shared {
		ports.Nodes = lineNodes{w.Stores.Nodes, n.line}
	}
	n.Engine = delivery.New(ports, opts)
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(n.ended)
		require.NoError(w, n.Run(ctx))
	}()
	return n
}

// Stop shuts a node down gracefully.
func (n *Node) Stop() {
	n.cancel()
	<-n.ended
}

// stopAfter shuts a node down after d.
func (n *Node) stopAfter(d time.Duration) {
	<-time.After(d)
	n.Stop()
}

// Kill ends a node: from now on, the stores carry out none of its calls.
func (n *Node) Kill() {
	n.line.cut()
	n.Stop()
}

// CutAfter cuts a node off from the stores after the given number of writes. The node does not
// get the reply of the last write.
func (n *Node) CutAfter(writes int) { n.line.cutAfter(writes) }

// IsCut reports whether the node is cut off from the stores.
func (n *Node) IsCut() bool {
	n.line.mu.Lock()
	defer n.line.mu.Unlock()
	return n.line.isCut
}

// Freeze suspends a node until thaw is called.
func (n *Node) Freeze() (thaw func()) { return n.line.freeze() }

// AnswerSettlementsAfter delays the reply of each settlement by d.
func (n *Node) AnswerSettlementsAfter(d time.Duration) {
	n.line.mu.Lock()
	defer n.line.mu.Unlock()
	n.line.settling = d
}

// Ended returns a channel that is closed when the node has ended.
func (n *Node) Ended() <-chan struct{} { return n.ended }

// Publish appends count messages, and notifies n unless n is nil.
func (w *World) Publish(n *Node, count int) {
	w.Helper()
	for count > 0 {
		messages := repositorytest.Messages(min(count, repository.MaxAppend))
		count -= len(messages)
		appended, err := w.Stores.Streams.Append(context.Background(), w.Stream, messages)
		require.NoError(w, err)
		if n != nil {
			n.Published(w.Stream, messages, appended)
		}
	}
}

// Standing returns the stored standing of a receiver's cursor. It fences the owner of the
// cursor, so a test calls it after the nodes have ended.
func (w *World) Standing(r *Receiver) domain.Standing {
	w.Helper()
	c, _, err := w.Stores.Cursors.Load(context.Background(), r.ID, domain.Owner{Incarnation: "observer", Limit: 1, Policy: r.Policy}, w.Clock.Now)
	if domain.KindOf(err) == domain.NotFound {
		s, err := w.Stores.Cursors.Standing(context.Background(), r.ID)
		require.NoError(w, err)
		return s
	}
	require.NoError(w, err)
	return c.Standing()
}

// DeadLetters returns the dead letters of a receiver.
func (w *World) DeadLetters(r *Receiver) []domain.Retry {
	w.Helper()
	dead, err := w.Stores.Cursors.DeadLetters(context.Background(), r.ID, domain.EntryID{Number: -1}, 100_000)
	require.NoError(w, err)
	return dead
}
