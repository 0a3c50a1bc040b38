package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

var connections atomic.Uint64

// A Conn is one connection. Its methods are safe for use by many goroutines.
type Conn struct {
	ID      uint64 // unique in the process
	User    string // as proven by SASL PLAIN; empty for an anonymous peer
	options Options
	app     Application
	peer    Peer
	nc      net.Conn
	in      *bufio.Reader

	mu         sync.Mutex
	room       *sync.Cond // on mu: the outbox was written, a delivery settled, or the end
	out        writeBuffer
	heartbeat  time.Duration // what the peer wants to hear something within
	frameSize  uint32        // the largest that the peer takes
	opened     bool
	authorized bool
	over       bool        // nothing more will be read
	aborted    *amqp.Error // if set, all that is read is ignored, except a close
	closeSent  bool
	sessions   map[uint16]*peerSession
	links      int
	detaching  int // links that have ended and whose detach by the peer is awaited
	unsettled  int // bytes of frames with messages that the application has not settled
	partial    int // bytes of frames with messages of which only a part has come
	pending    int // bytes of messages that wait for the windows of sessions
	undecided  int // bytes of links that the application has not accepted or refused yet
	reading    int // bytes of a large frame that is read before the peer is authorized
	accounted  int // bytes of all these and of the outbox that Totals knows of
	hungry     map[*Link]struct{}
	afterFrame []func() // what to call once mu is free
}

func newConn(nc net.Conn, o Options) *Conn {
	c := &Conn{
		ID: connections.Add(1), options: o, nc: nc, in: bufio.NewReaderSize(nc, 32<<10), frameSize: amqp.MinMaxFrameSize,
		sessions: map[uint16]*peerSession{}, hungry: map[*Link]struct{}{},
	}
	c.room = sync.NewCond(&c.mu)
	c.out.wake = make(chan struct{}, 1)
	return c
}

// serveConn serves the connection until it is over.
func (c *Conn) serveConn() error {
	var writing sync.WaitGroup
	writing.Add(1)
	go c.runWriter(&writing)
	err := c.negotiate()
	if err == nil {
		err = c.readFrames()
	}
	var said *amqp.Error
	if errors.As(err, &said) {
		c.sendClose(said)
	}
	aborted := c.finishConn()
	writing.Wait()
	_ = c.nc.Close()
	c.releaseBuffers()
	if aborted != nil {
		return aborted
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil // gone without a word, or closed by this side
	}
	return err
}

// finishConn ends all links and lets the writer write the rest. It returns why the
// connection was aborted, if it was.
func (c *Conn) finishConn() error {
	c.mu.Lock()
	c.over = true
	var err error
	if c.aborted != nil {
		err = c.aborted
	}
	c.room.Broadcast()
	for _, s := range c.sessions {
		s.endLinks()
	}
	c.options.Totals.sessions.Add(-int64(len(c.sessions)))
	clear(c.sessions)
	c.out.sealed = true
	c.out.wakeWriter()
	c.unlockAndCall() // unlocks
	if c.peer != nil {
		c.peer.Disconnected()
	}
	return err
}

// releaseBuffers returns to the totals what was buffered for the peer.
func (c *Conn) releaseBuffers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.waiting, c.out.spare, c.out.writing = nil, nil, 0
	c.reading = 0
	c.updateTotals()
}

// shutDown sends a close, and lets reading end soon.
func (c *Conn) shutDown(why *amqp.Error) {
	c.sendClose(why)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopReading()
}

func (c *Conn) sendClose(why *amqp.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeSent || !c.opened {
		return
	}
	c.closeSent = true
	c.emitFrame(0, &amqp.Close{Error: why}, nil)
}

// callLater calls f once the state is not locked any more. The caller holds c.mu.
func (c *Conn) callLater(f func()) { c.afterFrame = append(c.afterFrame, f) }

// unlockAndCall unlocks c.mu and makes the calls that were put off.
func (c *Conn) unlockAndCall() {
	calls := c.afterFrame
	c.afterFrame = nil
	c.updateTotals()
	c.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// readFrames reads until the peer closes or breaks the connection.
func (c *Conn) readFrames() error {
	for {
		if !c.waitForRoom() {
			return nil
		}
		frame, err := c.readFrame()
		if err != nil {
			return err
		}
		if len(frame.Body) == 0 {
			continue
		}
		p, payload, err := amqp.ReadPerformative(frame.Body)
		if err != nil {
			return amqp.Errorf(amqp.DecodeError, "%v", err)
		}
		if c.options.Frames != nil {
			c.options.Frames(c.ID, false, frame.Channel, p, len(payload))
		}
		closed, err := c.handleFrame(frame.Channel, p, payload, len(frame.Body))
		if err != nil || closed {
			return err
		}
	}
}

func (c *Conn) readFrame() (amqp.Frame, error) {
	limit, err := c.prepareRead()
	if err != nil {
		return amqp.Frame{}, err
	}
	if err := c.reserveFrame(limit); err != nil {
		return amqp.Frame{}, err
	}
	frame, err := amqp.ReadFrame(c.in, limit)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if c.isOver() {
			return frame, io.EOF
		}
		return frame, amqp.Errorf(amqp.ResourceLimitExceeded, "nothing came for %v, twice what was agreed", 2*c.options.IdleTimeOut)
	}
	if err == nil && frame.Type != amqp.FrameAMQP {
		return frame, amqp.Errorf(amqp.FramingError, "a frame of type %d", frame.Type)
	}
	return frame, err
}

// prepareRead sets the deadline of the next read and returns the largest frame
// that is taken. It holds c.mu meanwhile: a deadline of stopReading stays.
func (c *Conn) prepareRead() (largest uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		err = c.nc.SetReadDeadline(time.Now().Add(2 * c.options.IdleTimeOut))
	}
	return c.options.MaxFrameSize, err
}

func (c *Conn) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// waitForRoom waits while the peer does not take what it asked for, or the
// application is busy with what the peer sent. It reports false at the end.
func (c *Conn) waitForRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	isFull := func() bool { return c.out.size() > 2*c.bufferLimit(c.options.OutBuffer) }
	for !c.over && c.out.failed == nil && (isFull() || c.unsettled > c.bufferLimit(c.options.InBuffer)) {
		c.room.Wait()
	}
	return c.out.failed == nil && !isFull() // a peer that does not read has no answer to a close
}

// handleFrame executes a performative that came in a frame of size bytes.
func (c *Conn) handleFrame(channel uint16, p amqp.Performative, payload []byte, size int) (closed bool, err error) {
	c.mu.Lock()
	defer c.unlockAndCall()
	c.reading = 0 // what remains of the frame is accounted for by what it says
	if _, isClose := p.(*amqp.Close); c.aborted != nil && !isClose {
		return false, nil
	}
	switch p := p.(type) {
	case *amqp.Close:
		if !c.closeSent {
			c.closeSent = true
			c.emitFrame(0, &amqp.Close{}, nil)
		}
		return true, nil
	case *amqp.Begin:
		return false, c.beginSession(channel, p)
	case *amqp.Open, *amqp.Mechanisms, *amqp.Init, *amqp.Outcome:
		return false, amqp.Errorf(amqp.NotAllowed, "a %T on an open connection", p)
	}
	s := c.sessions[channel]
	if s == nil {
		// Azure's client for Go ends a session that it has given up, also before it has begun it. That
		// costs nothing, and the connection may carry other work.
		if _, isEnd := p.(*amqp.End); isEnd || c.closeSent {
			return false, nil
		}
		return false, amqp.Errorf(amqp.NotAllowed, "a %T on channel %d, which has no session", p, channel)
	}
	if s.ending {
		if _, ended := p.(*amqp.End); ended {
			s.removeSession()
		}
		return false, nil
	}
	if fault := s.handleFrame(p, payload, size); fault != nil {
		s.endWithFault(fault)
	}
	return false, nil
}

// hungryWithRoom returns the links that wait for room, if there is some now.
// The caller holds c.mu.
func (c *Conn) hungryWithRoom() []*Link {
	if len(c.hungry) == 0 || c.out.size() > c.bufferLimit(c.options.OutBuffer)/2 {
		return nil
	}
	var ready []*Link
	for l := range c.hungry {
		if len(l.session.pending) == 0 {
			delete(c.hungry, l)
			ready = append(ready, l)
		}
	}
	return ready
}
