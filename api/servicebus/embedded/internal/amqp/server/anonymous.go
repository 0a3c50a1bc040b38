package server

import (
	"encoding/binary"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// The limits of a connection before Conn.Authorize is called. They allow a client to present a token: a client needs
// two links in one session, and some clients also begin other sessions early.
const (
	anonymousFrameSize = 16 << 10 // larger frames are accepted, but their memory is counted while they are read
	anonymousSessions  = 64
	anonymousLinks     = 16
	anonymousDetaching = 16
	anonymousBuffer    = 16 << 10
)

// closeTimeout is how long the server waits for the peer's close after it has sent its own.
const closeTimeout = time.Second

// Authorize lifts the limits of an anonymous connection. The application calls it after the peer has presented a valid
// token or key.
func (c *Conn) Authorize() {
	c.mu.Lock()
	already := c.authorized
	c.authorized = true
	c.mu.Unlock()
	if !already && c.options.Authorized != nil {
		c.options.Authorized()
	}
}

// Authorized reports whether Authorize was called.
func (c *Conn) Authorized() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.authorized
}

// limitAnonymousTime ends the connection unless it is authorized within TokenTimeout. The caller must call stop when
// the connection ends.
func (c *Conn) limitAnonymousTime() (stop func()) {
	done := make(chan struct{})
	timer := time.AfterFunc(c.options.TokenTimeout, func() {
		defer close(done)
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.authorized {
			c.abortConn(amqp.Errorf(amqp.UnauthorizedAccess,
				"no valid token within %v; put one to $cbs, or use SASL PLAIN with a key", c.options.TokenTimeout))
		}
	})
	return func() {
		if !timer.Stop() {
			<-done
		}
	}
}

// abortConn ends the connection because of an error. It sends a close; after that, everything except the peer's close
// is ignored. The caller must hold c.mu.
func (c *Conn) abortConn(why *amqp.Error) {
	if c.aborted != nil {
		return
	}
	c.aborted = why
	if c.opened && !c.closeSent {
		c.closeSent = true
		c.emitFrame(0, &amqp.Close{Error: why}, nil)
	}
	c.stopReading()
	_ = c.nc.SetWriteDeadline(time.Now().Add(closeTimeout))
}

// stopReading stops reading after closeTimeout, so that the peer can still send its close. The caller must hold c.mu.
func (c *Conn) stopReading() {
	c.over = true
	_ = c.nc.SetReadDeadline(time.Now().Add(closeTimeout))
	c.room.Broadcast()
}

// reserveFrame counts the memory of the next frame if the connection is anonymous and the frame is large. The server
// has announced Options.MaxFrameSize for the whole connection, so it accepts such a frame even before the peer presents
// a token, unless all connections together have reached their memory limit.
func (c *Conn) reserveFrame(largest uint32) error {
	head, err := c.in.Peek(4)
	if err != nil {
		return nil // reading the frame will return err
	}
	size := binary.BigEndian.Uint32(head)
	if size <= anonymousFrameSize || size > largest {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.authorized {
		return nil
	}
	c.reading = int(size)
	c.updateTotals()
	if c.options.Totals.isScarce() {
		return memoryError()
	}
	return nil
}

func memoryError() *amqp.Error {
	return amqp.Errorf(amqp.ResourceLimitExceeded, "the connections of the namespace buffer more than the limit; read the messages that were requested, and reconnect")
}

// maxLinks returns the current maximum number of links. The callers of maxLinks, maxSessions and maxDetaching must hold
// c.mu.
func (c *Conn) maxLinks() int {
	if !c.authorized {
		return min(c.options.MaxLinks, anonymousLinks)
	}
	return c.options.MaxLinks
}

func (c *Conn) maxSessions() int {
	if !c.authorized {
		return min(c.options.MaxSessions, anonymousSessions)
	}
	return c.options.MaxSessions
}

func (c *Conn) maxDetaching() int {
	if !c.authorized {
		return min(c.options.MaxDetaching, anonymousDetaching)
	}
	return c.options.MaxDetaching
}
