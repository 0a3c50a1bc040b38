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
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A busLine carries the AMQP connections of one process to the namespace, frame by
// frame, each when the scheduler says so.
type busLine struct {
	w    *world
	who  string
	dead atomic.Bool
	kind atomic.Bool // nothing befalls it any more

	isHubs bool

	mu    sync.Mutex
	conns []*busConn
	made  int
}

// A busConn is one connection: what the process writes waits in a line of its own,
// and so does what the namespace answers. Nothing overtakes within one of them.
type busConn struct {
	line   *busLine
	number int
	near   net.Conn // the other end of what the process has
	far    net.Conn // to the namespace
	once   sync.Once
	closed chan struct{}
}

// dial connects the process to the namespace.
func (l *busLine) dial(ctx context.Context) (net.Conn, error) {
	if l.dead.Load() || l.isAway() {
		return nil, errCut
	}
	far, err := l.w.bus.Dial(ctx)
	if err != nil {
		return nil, err
	}
	mine, near := net.Pipe()
	l.mu.Lock()
	l.made++
	c := &busConn{line: l, number: l.made, near: near, far: far, closed: make(chan struct{})}
	l.conns = append(l.conns, c)
	l.mu.Unlock()
	l.w.ghosts.Go(func() { c.pump("sends", near, far) })
	l.w.ghosts.Go(func() { c.pump("gets", far, near) })
	return mine, nil
}

// isAway reports whether the namespace cannot be reached for now.
func (l *busLine) isAway() bool {
	return l.isHubs && !l.w.calm && time.Now().Before(time.Unix(0, l.w.away.Load()))
}

// busIsAway has no hub reach the namespace for a while.
func (w *world) busIsAway(d time.Duration) {
	w.tell("the bus is away for " + d.String())
	w.reached("the bus was away for a while")
	w.away.Store(time.Now().Add(d).UnixNano())
	w.mu.Lock()
	lines := slices.Clone(w.lines)
	w.mu.Unlock()
	for _, l := range lines {
		if l.isHubs {
			l.cut()
		}
	}
}

// cut breaks all connections.
func (l *busLine) cut() {
	l.mu.Lock()
	conns := slices.Clone(l.conns)
	l.conns = nil
	l.mu.Unlock()
	for _, c := range conns {
		c.cut()
	}
}

func (c *busConn) cut() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.near.Close()
		_ = c.far.Close()
		c.leave()
	})
}

// leave takes the connection off its line.
func (c *busConn) leave() {
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	c.line.conns = slices.DeleteFunc(c.line.conns, func(o *busConn) bool { return o == c })
}

// cutNear breaks the connection for the process, of which the namespace learns later only.
// Until then it keeps what the process had, a session, say.
func (c *busConn) cutNear() {
	const later = 20 * time.Second
	c.once.Do(func() {
		close(c.closed)
		_ = c.near.Close()
		c.leave()
		c.line.w.ghosts.Go(func() {
			_ = clock.Sleep(c.line.w.ctx, later) // the end of the simulation ends the wait
			_ = c.far.Close()
		})
	})
}

// pump carries what comes from one end to the other until either is closed.
func (c *busConn) pump(direction string, from, to net.Conn) {
	defer c.cut()
	f := &flow{conn: c, direction: direction, came: make(chan struct{}, 1)}
	c.line.w.ghosts.Go(func() { f.read(from) })
	for {
		t, granted := f.turn()
		if t == nil {
			select {
			case <-f.came:
				continue
			case <-c.closed:
				return
			}
		}
		c.line.w.wait(t)
		select {
		case ok := <-granted:
			if !ok {
				return
			}
		case <-c.closed:
			c.line.w.leave(t)
			return
		}
		if _, err := to.Write(f.take()); err != nil {
			return
		}
	}
}

// A flow is one direction of a connection: what has been written and not arrived.
type flow struct {
	conn      *busConn
	direction string
	came      chan struct{} // holds one if something has come since the last look

	mu    sync.Mutex
	queue [][]byte
}

func (f *flow) read(from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			f.conn.cut()
			return
		}
		f.mu.Lock()
		f.queue = append(f.queue, slices.Clone(buffer[:n]))
		f.mu.Unlock()
		f.conn.line.w.rouse() // whoever waits before it may be urgent now
		select {
		case f.came <- struct{}{}:
		default:
		}
	}
}

func (f *flow) take() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	chunk := f.queue[0]
	f.queue = f.queue[1:]
	return chunk
}

// isUrgent reports whether somebody may hold a mutex until what is in the queue has
// arrived: whoever waits for that mutex stops the clock. Nobody does for messages
// and what is said of them.
func (f *flow) isUrgent() bool {
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

// turn is that of the next chunk to be carried, nil if there is none.
func (f *flow) turn() (*turn, <-chan bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return nil, nil
	}
	c := f.conn
	granted := make(chan bool, 1)
	return &turn{
		who: c.line.who, what: fmt.Sprintf("%d %s %s", c.number, f.direction, amqpframe.Names(f.queue[0])), urgent: f.isUrgent, many: true,
		goes: func() string { granted <- true; return "carried" },
		faults: func() []fault {
			if c.line.kind.Load() {
				return nil
			}
			return []fault{
				{"cut at one end", func() string { granted <- false; c.cutNear(); return "cut" }},
				{"cut before", func() string { granted <- false; c.cut(); return "cut" }},
				{"cut after", func() string {
					cut := func() string { c.cut(); return "cut" }
					c.line.w.wait(&turn{who: c.line.who, what: fmt.Sprintf("%d breaks", c.number), goes: cut})
					granted <- true
					return "carried"
				}},
			}
		},
	}, granted
}
