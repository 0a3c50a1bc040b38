package simulate

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

// An objectNode is one life of a node that stores the events of objects, on a line of its own.
type objectNode struct {
	l      *objectWorld
	index  int
	who    string
	line   *httpLine
	store  *objectstore.Store
	ledger *ledger.Service
	skew   atomic.Int64 // of its clock
	killed atomic.Bool
	died   chan struct{} // closed by kill
}

func (l *objectWorld) objectNode(i int) *objectNode {
	l.omu.Lock()
	defer l.omu.Unlock()
	return l.nodes[i]
}

// begins starts a node, and another one some time after that was killed.
func (l *objectWorld) begins(i int) {
	l.ghosts.Go(func() {
		for l.ctx.Err() == nil && !l.ending.Load() {
			if l.rests.Load() {
				_ = clock.Sleep(l.ctx, time.Second) // the loop looks at the context
				continue
			}
			n, err := l.startNode(i)
			if err != nil {
				l.fail(err)
				return
			}
			n.workUntilDeath()
			_ = clock.Sleep(l.ctx, time.Second) // the loop looks at the context
		}
	})
}

func (l *objectWorld) startNode(i int) (*objectNode, error) {
	l.omu.Lock()
	defer l.omu.Unlock()
	l.starts[i]++
	n := &objectNode{l: l, index: i, who: fmt.Sprintf("node-%d.%d", i, l.starts[i]), died: make(chan struct{})}
	n.line = l.newHTTPLine(n.who)
	db, err := client.Connect(client.Connection{Endpoint: secure(l.engine.Endpoint()), Key: l.engine.Key(), Transport: n.line})
	if err != nil {
		return nil, fmt.Errorf("%s connects: %w", n.who, err)
	}
	options := l.options
	options.Random = newDice(l.o.Seed, uint64(objectUses+600+100*i+l.starts[i])).next //nolint:gosec // positive
	options.Clock = func() time.Time { return l.clock.now().Add(time.Duration(n.skew.Load())) }
	n.store = objectstore.New(db, options)
	n.ledger = l.newLedger(n.store, &objectSource{l.source, n, l.newParty(n.who, objectUses+900)}, options)
	l.nodes[i] = n
	return n, nil
}

// workUntilDeath works on jobs until the node is killed. After that, what it does requests nothing.
func (n *objectNode) workUntilDeath() {
	ctx, cancel := context.WithCancel(n.l.ctx)
	defer cancel()
	n.l.ghosts.Go(func() { n.ledger.RunJobs(ctx) })
	select {
	case <-n.died:
	case <-n.l.ctx.Done():
	}
}

// call has the node do something, and reports whether it has ended before the node died, or the caller
// lost its patience.
func (n *objectNode) call(do func(ctx context.Context)) bool {
	ctx, cancel := context.WithTimeout(n.l.ctx, clientTimeout)
	defer cancel()
	done := make(chan struct{})
	n.l.calls.Add(1)
	n.l.ghosts.Go(func() {
		defer n.l.calls.Add(-1)
		defer close(done)
		do(ctx)
	})
	select {
	case <-done:
		return true
	case <-n.died:
	case <-ctx.Done():
	}
	return false
}

// kill ends the node: nothing that it requests is carried out from now on.
func (n *objectNode) kill() {
	if n.killed.Swap(true) {
		return
	}
	n.line.cut()
	close(n.died)
	n.l.omu.Lock()
	defer n.l.omu.Unlock()
	if n.l.nodes[n.index] == n {
		n.l.nodes[n.index] = nil
	}
}

// mishapsOfObjectNodes are those that happen to no single request.
func (l *objectWorld) mishapsOfObjectNodes() {
	n := l.objectNode(l.mishaps.n(objectNodes))
	if l.calm || n == nil {
		return
	}
	happens := func(rate int) bool {
		return rate > 0 && l.mishaps.n(100_000) < rate && l.mayHappen()
	}
	switch {
	case happens(4 * l.weather.kills):
		l.tell(n.who + " is killed")
		n.kill()
		l.reached("a hub was killed")
	case happens(4 * l.weather.pauses):
		d := time.Duration(1+l.mishaps.n(90)) * time.Second
		l.tell(n.who + " is paused for " + d.String())
		l.mutePause(n.who, d)
		l.reached("a hub was paused")
	case happens(2 * l.weather.storms):
		d := time.Duration(1+l.mishaps.n(60)) * time.Second
		l.storm, l.hot = time.Now().Add(d), ""
		l.tell("the account throttles everybody for " + d.String())
		l.reached("the account throttled everybody for a while")
	case happens(l.weather.jumps):
		limit := maxObjectSkew
		if l.mishaps.n(2) == 0 {
			limit = domain.ClockMargin
		}
		d := time.Duration(l.mishaps.n(2*int(limit/time.Second)))*time.Second - limit
		l.tell(n.who + " has its clock moved by " + d.String())
		n.skew.Store(int64(d))
		l.hasSkew, l.hasJumped = true, l.hasJumped || d.Abs() > domain.ClockMargin
		l.reached("a clock jumped")
	}
}
