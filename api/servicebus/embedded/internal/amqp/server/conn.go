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

// A Conn is one connection. Its methods are safe for concurrent use.
type Conn struct {
	ID      uint64 // ID is unique in the process
	User    string // User was verified by SASL PLAIN; it is empty for an anonymous peer
	options Options
	app     Application
	peer    Peer
	nc      net.Conn
	in      *bufio.Reader

	mu         sync.Mutex
	room       *sync.Cond // room uses mu; it is signaled after a write, after a settlement, and at the end of the connection
	out        outbox
	heartbeat  time.Duration // maximum time between two frames that are sent to the peer
	frameSize  uint32        // size of the largest frame that the peer accepts
	opened     bool
	authorized bool
	over       bool        // true after the last read
	aborted    *amqp.Error // error that aborted the connection; after it, all input except a close is ignored
	closeSent  bool
	sessions   map[uint16]*peerSession
	links      int
	detaching  int // number of ended links whose detach the peer has not yet sent
	unsettled  int // size of the frames whose messages the application has not settled
	partial    int // size of the frames of incomplete messages
	pending    int // size of the messages that wait until the peer opens the window of a session
	undecided  int // size of the attaches that the application has neither accepted nor refused
	reading    int // size of a large frame that is being read before the peer is authorized
	accounted  int // bytes of this connection, including the outbox, that Totals currently counts
	hungry     map[*Link]struct{}
	afterFrame []func() // functions to call after mu is released
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

// serveConn serves the connection until it ends.
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
		return nil // one of the two sides closed the connection
	}
	return err
}

// finishConn ends all links and closes the outbox; the writer then writes what remains and ends. It returns the error
// that aborted the connection, or nil.
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
	c.unlockAndCall() // unlocks c.mu
	if c.peer != nil {
		c.peer.Disconnected()
	}
	return err
}

// releaseBuffers subtracts the buffers of the connection from Totals.
func (c *Conn) releaseBuffers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.waiting, c.out.spare, c.out.writing = nil, nil, 0
	c.reading = 0
	c.updateTotals()
}

// shutDown sends a close and limits the time of later reads.
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

// callLater calls f after c.mu is released. The caller must hold c.mu.
func (c *Conn) callLater(f func()) { c.afterFrame = append(c.afterFrame, f) }

// unlockAndCall releases c.mu and calls the functions that were passed to callLater.
func (c *Conn) unlockAndCall() {
	calls := c.afterFrame
	c.afterFrame = nil
	c.updateTotals()
	c.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// readFrames reads and handles frames until the connection ends.
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
		return frame, amqp.Errorf(amqp.ResourceLimitExceeded, "no frame was received for %v, twice the agreed timeout", 2*c.options.IdleTimeOut)
	}
	if err == nil && frame.Type != amqp.FrameAMQP {
		return frame, amqp.Errorf(amqp.FramingError, "a frame of type %d", frame.Type)
	}
	return frame, err
}

// prepareRead sets the read deadline and returns the maximum frame size. It holds c.mu so that it cannot overwrite the
// deadline that stopReading has set.
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

// waitForRoom waits while the peer does not read, or while too many of its messages are unsettled. It returns false if
// a write has failed or the outbox is still full.
func (c *Conn) waitForRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	isFull := func() bool { return c.out.size() > 2*c.bufferLimit(c.options.OutBuffer) }
	for !c.over && c.out.failed == nil && (isFull() || c.unsettled > c.bufferLimit(c.options.InBuffer)) {
		c.room.Wait()
	}
	return c.out.failed == nil && !isFull() // a peer that does not read cannot answer a close
}

// handleFrame handles a performative. size is the size of its frame.
func (c *Conn) handleFrame(channel uint16, p amqp.Performative, payload []byte, size int) (closed bool, err error) {
	c.mu.Lock()
	defer c.unlockAndCall()
	c.reading = 0 // from here on, the remaining counters include the frame
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
		// Azure's Go client may end a session that it has not begun. The server ignores this, because the connection
		// may have other sessions.
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

// linksWithRoom returns the links that wait for room in the outbox. If there is no room, it returns none. The caller
// must hold c.mu.
func (c *Conn) linksWithRoom() []*Link {
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
