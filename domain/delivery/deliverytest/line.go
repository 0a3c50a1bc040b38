package deliverytest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// A line is the connection of a node to the stores, which can be cut.
type line struct {
	mu     sync.Mutex
	isCut  bool
	left   int           // number of writes after which the line is cut; 0: no limit
	frozen chan struct{} // closed when the line thaws; nil: it is not frozen

	settling time.Duration // delay between a settlement and its reply

	// fault returns the errors to inject into a call: before prevents the call, and after replaces
	// its success.
	fault func() (before, after error)
}

var errCut = domain.Errorf(domain.Unavailable, "the line is cut")

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
}

func (l *line) cutAfter(writes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = writes
}

// freeze blocks all calls over the line until thaw is called.
func (l *line) freeze() (thaw func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	frozen := make(chan struct{})
	l.frozen = frozen
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.frozen = nil
		close(frozen)
	}
}

func (l *line) waitForThaw() {
	l.mu.Lock()
	frozen := l.frozen
	l.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// do runs a call, unless the line is cut. It returns errCut if the line is cut before the reply.
func (l *line) do(isWrite bool, call func() error) error {
	l.waitForThaw()
	l.mu.Lock()
	var before, after error
	if l.isCut {
		before = errCut
	} else if l.fault != nil {
		before, after = l.fault()
	}
	l.mu.Unlock()
	if before != nil {
		return before
	}
	err := call()
	l.waitForThaw()
	l.mu.Lock()
	defer l.mu.Unlock()
	if isWrite && l.left > 0 {
		l.left--
		l.isCut = l.isCut || l.left == 0
	}
	if l.isCut {
		return errCut
	}
	if err == nil && after != nil {
		return after
	}
	return err
}

type lineStreams struct {
	repository.Streams
	line *line
}

func (s lineStreams) Read(ctx context.Context, stream domain.StreamName, from domain.Position, limit int) (found repository.Entries, err error) {
	err = s.line.do(false, func() (err error) {
		found, err = s.Streams.Read(ctx, stream, from, limit)
		return err
	})
	return found, err
}

func (s lineStreams) Seek(ctx context.Context, stream domain.StreamName, priority int, isBefore func(int64, time.Time) bool) (at domain.Position, err error) {
	err = s.line.do(false, func() (err error) {
		at, err = s.Streams.Seek(ctx, stream, priority, isBefore)
		return err
	})
	return at, err
}

func (s lineStreams) End(ctx context.Context, stream domain.StreamName) (end repository.StreamEnd, err error) {
	err = s.line.do(false, func() (err error) {
		end, err = s.Streams.End(ctx, stream)
		return err
	})
	return end, err
}

func (s lineStreams) CurrentEnd(ctx context.Context, stream domain.StreamName) (end repository.StreamEnd, err error) {
	err = s.line.do(false, func() (err error) {
		end, err = s.Streams.CurrentEnd(ctx, stream)
		return err
	})
	return end, err
}

type lineCursors struct {
	repository.Cursors
	line  *line
	world *World
}

func (s lineCursors) Load(ctx context.Context, id domain.CursorID, owner domain.Owner, clock func() time.Time) (c *domain.Cursor, version repository.CursorVersion, err error) {
	s.world.mu.Lock()
	s.world.loadCount++
	s.world.mu.Unlock()
	err = s.line.do(true, func() (err error) {
		c, version, err = s.Cursors.Load(ctx, id, owner, clock)
		if err == nil {
			s.world.countTakeover(id, owner.Incarnation)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return c, version, nil
}

func (s lineCursors) Settle(ctx context.Context, id domain.CursorID, version repository.CursorVersion, t domain.Settlement) (settled repository.CursorVersion, err error) {
	n := t.Standing.Counters
	require.EqualValues(s.world, n.Triggered, n.Delivered+n.Errored+n.Cancelled+n.Expired+int64(t.Standing.Outstanding()), "P2")
	err = s.line.do(true, func() (err error) {
		settled, err = s.Cursors.Settle(ctx, id, version, t)
		return err
	})
	s.line.mu.Lock()
	takes := s.line.settling
	s.line.mu.Unlock()
	if takes > 0 {
		<-time.After(takes)
	}
	return settled, err
}

func (s lineCursors) Retire(ctx context.Context, id domain.CursorID, version repository.CursorVersion) error {
	return s.line.do(true, func() error { return s.Cursors.Retire(ctx, id, version) })
}

// countTakeover counts the take-overs of a cursor.
func (w *World) countTakeover(id domain.CursorID, incarnation string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.owners[id] != "" && w.owners[id] != incarnation {
		w.takeovers[id]++
	}
	w.owners[id] = incarnation
}

// Loads returns the number of loads of cursors, including failed ones.
func (w *World) Loads() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.loadCount
}

func (w *World) takeoversOf(r *Receiver) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takeovers[r.ID]
}

// lineShards adds the changes that Note has recorded to the entries of cursors.
type lineShards struct {
	repository.Shards
	world *World
	line  *line
}

func (s lineShards) WatchPage(ctx context.Context, shard int, stream domain.StreamName, page int) (found repository.WatchPage, err error) {
	err = s.line.do(false, func() (err error) {
		found, err = s.Shards.WatchPage(ctx, shard, stream, page)
		return err
	})
	return found, err
}

func (s lineShards) MarkServed(ctx context.Context, shard int, stream domain.StreamName, page int, version repository.WatchPageVersion, served int64) error {
	return s.line.do(true, func() error { return s.Shards.MarkServed(ctx, shard, stream, page, version, served) })
}

func (s lineShards) Cursors(ctx context.Context, shard int) ([]repository.ShardEntry, []repository.WatchedStream, error) {
	entries, watched, err := s.Shards.Cursors(ctx, shard)
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	for i := range entries {
		entries[i].Changes += s.world.changes[entries[i].Cursor]
	}
	return entries, watched, err
}

type lineNodes struct {
	nodes repository.Nodes
	line  *line
}

func (s lineNodes) Beat(ctx context.Context, n repository.Node) error {
	return s.line.do(true, func() error { return s.nodes.Beat(ctx, n) })
}

func (s lineNodes) Nodes(ctx context.Context) (nodes []repository.Node, a repository.Assignment, err error) {
	err = s.line.do(false, func() (err error) {
		nodes, a, err = s.nodes.Nodes(ctx)
		return err
	})
	return nodes, a, err
}

func (s lineNodes) Assign(ctx context.Context, a repository.Assignment) error {
	return s.line.do(true, func() error { return s.nodes.Assign(ctx, a) })
}

func (s lineNodes) Leave(ctx context.Context, incarnation string) error {
	return s.line.do(true, func() error { return s.nodes.Leave(ctx, incarnation) })
}

type lineCaller struct {
	world *World
	node  *Node
}

type nodeKey struct{}

// nodeOf returns the node that makes the call with this context.
func nodeOf(ctx context.Context) *Node { return ctx.Value(nodeKey{}).(*Node) }

// Call implements [delivery.Caller].
func (c lineCaller) Call(ctx context.Context, call delivery.Call) domain.Answer {
	a := c.world.Call(context.WithValue(ctx, nodeKey{}, c.node), call)
	c.node.line.waitForThaw()
	return a
}
