package simulate

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/amqpframe"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A busTransport carries the AMQP connections of one process to the namespace. The scheduler chooses when each chunk of
// frames is delivered.
type busTransport struct {
	sim       *simulation
	who       string
	dead      atomic.Bool
	faultFree atomic.Bool // true when no further faults are injected on this transport

	isHubs bool

	mu     sync.Mutex
	conns  []*busConnection
	dialed int
}

// A busConnection is one AMQP connection. Each direction has a separate queue, and the frames of a direction stay in
// order.
type busConnection struct {
	transport *busTransport
	number    int
	near      net.Conn // end of the connection to the process
	far       net.Conn // end of the connection to the namespace
	once      sync.Once
	closed    chan struct{}
}

// dialBus connects the process to the namespace.
func (l *busTransport) dialBus(ctx context.Context) (net.Conn, error) {
	if l.dead.Load() || l.isUnreachable() {
		return nil, errCut
	}
	far, err := l.sim.env.bus.Dial(ctx)
	if err != nil {
		return nil, err
	}
	mine, near := net.Pipe()
	l.mu.Lock()
	l.dialed++
	c := &busConnection{transport: l, number: l.dialed, near: near, far: far, closed: make(chan struct{})}
	l.conns = append(l.conns, c)
	l.mu.Unlock()
	l.sim.background.Go(func() { c.forwardChunks("sends", near, far) })
	l.sim.background.Go(func() { c.forwardChunks("gets", far, near) })
	return mine, nil
}

// isUnreachable reports whether the hubs cannot reach the namespace now.
func (l *busTransport) isUnreachable() bool {
	return l.isHubs && !l.sim.FaultFree && time.Now().Before(time.Unix(0, l.sim.faults.busAwayUntil.Load()))
}

// makeBusUnreachable disconnects all hubs from the namespace for the duration d.
func (sim *simulation) makeBusUnreachable(d time.Duration) {
	sim.Log("the bus is away for " + d.String())
	sim.MarkReached("the bus was away for a while")
	sim.faults.busAwayUntil.Store(time.Now().Add(d).UnixNano())
	sim.mu.Lock()
	lines := slices.Clone(sim.env.busTransports)
	sim.mu.Unlock()
	for _, l := range lines {
		if l.isHubs {
			l.cutConnections()
		}
	}
}

// cutConnections breaks all connections.
func (l *busTransport) cutConnections() {
	l.mu.Lock()
	conns := slices.Clone(l.conns)
	l.conns = nil
	l.mu.Unlock()
	for _, c := range conns {
		c.closeBoth()
	}
}

func (c *busConnection) closeBoth() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.near.Close()
		_ = c.far.Close()
		c.detach()
	})
}

// detach removes the connection from its transport.
func (c *busConnection) detach() {
	c.transport.mu.Lock()
	defer c.transport.mu.Unlock()
	c.transport.conns = slices.DeleteFunc(c.transport.conns, func(o *busConnection) bool { return o == c })
}

// closeNear breaks the connection at the end of the process. The namespace detects this only later. Until then, locks
// of the process, for example on a session, stay in force.
func (c *busConnection) closeNear() {
	const later = 20 * time.Second
	c.once.Do(func() {
		close(c.closed)
		_ = c.near.Close()
		c.detach()
		c.transport.sim.background.Go(func() {
			_ = clock.Sleep(c.transport.sim.ctx, later) // returns early if the simulation ends
			_ = c.far.Close()
		})
	})
}

// forwardChunks copies chunks between the two ends, in one direction, until either end is closed.
func (c *busConnection) forwardChunks(direction string, from, to net.Conn) {
	defer c.closeBoth()
	f := &chunkQueue{conn: c, direction: direction, arrived: make(chan struct{}, 1)}
	c.transport.sim.background.Go(func() { f.readChunks(from) })
	for {
		t, granted := f.nextTurn()
		if t == nil {
			select {
			case <-f.arrived:
				continue
			case <-c.closed:
				return
			}
		}
		c.transport.sim.Enqueue(t)
		select {
		case ok := <-granted:
			if !ok {
				return
			}
		case <-c.closed:
			c.transport.sim.Remove(t)
			return
		}
		if _, err := to.Write(f.takeChunk()); err != nil {
			return
		}
	}
}

// A chunkQueue holds the undelivered chunks of one direction.
type chunkQueue struct {
	conn      *busConnection
	direction string
	arrived   chan struct{} // receives a value when a chunk was added

	mu    sync.Mutex
	queue [][]byte
}

func (f *chunkQueue) readChunks(from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			f.conn.closeBoth()
			return
		}
		f.mu.Lock()
		f.queue = append(f.queue, slices.Clone(buffer[:n]))
		f.mu.Unlock()
		f.conn.transport.sim.WakeUp() // if this chunk is urgent, the queued chunks before it become urgent too
		select {
		case f.arrived <- struct{}{}:
		default:
		}
	}
}

func (f *chunkQueue) takeChunk() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	chunk := f.queue[0]
	f.queue = f.queue[1:]
	return chunk
}

// isUrgent reports whether a client may hold a mutex until a queued chunk is delivered. That chunk must be delivered
// before time passes, because a goroutine that waits for the mutex stops the bubble's clock. Clients hold no mutex
// while they wait for messages or for the outcomes of messages.
func (f *chunkQueue) isUrgent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.queue, func(chunk []byte) bool {
		switch amqpframe.Names(chunk) {
		case "transfer", "disposition":
			return bytes.Contains(chunk, []byte("put-token")) || bytes.Contains(chunk, []byte("status-code"))
		}
		return true
	})
}

// nextTurn returns the turn of the next chunk, or nil if the queue is empty.
func (f *chunkQueue) nextTurn() (*scheduler.Turn, <-chan bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return nil, nil
	}
	c := f.conn
	granted := make(chan bool, 1)
	return &scheduler.Turn{
		Who: c.transport.who, What: fmt.Sprintf("%d %s %s", c.number, f.direction, amqpframe.Names(f.queue[0])), Urgent: f.isUrgent, IsFrequent: true,
		Proceed: func() string { granted <- true; return "carried" },
		Faults: func() []scheduler.Fault {
			if c.transport.faultFree.Load() {
				return nil
			}
			return []scheduler.Fault{
				{Name: "cut at one end", Inject: func() string { granted <- false; c.closeNear(); return "cut" }},
				{Name: "cut before", Inject: func() string { granted <- false; c.closeBoth(); return "cut" }},
				{Name: "cut after", Inject: func() string {
					cut := func() string { c.closeBoth(); return "cut" }
					c.transport.sim.Enqueue(&scheduler.Turn{Who: c.transport.who, What: fmt.Sprintf("%d breaks", c.number), Proceed: cut})
					granted <- true
					return "carried"
				}},
			}
		},
	}, granted
}
