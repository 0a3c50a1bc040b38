package server

import (
	"encoding/binary"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// Limits of a connection until Conn.Authorize is called. They are enough for
// any client that presents a token: it needs two links in one session, and some
// clients start other sessions meanwhile.
const (
	anonymousFrameSize = 16 << 10 // larger frames are accounted for while they are read
	anonymousSessions  = 64
	anonymousLinks     = 16
	anonymousDetaching = 16
	anonymousBuffer    = 16 << 10
)

// closeTimeout is how long the peer may take to answer a close.
const closeTimeout = time.Second

// Authorize lifts the limits of an anonymous connection. The application calls
// it when the peer has proven that it may use something.
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

// limitAnonymousTime ends the connection if it is not authorized in time. The
// caller calls stop at the end of the connection.
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

// abortConn ends the connection because of an error: it sends a close, and ignores all input
// until the peer's close. The caller holds c.mu.
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

// stopReading gives the peer closeTimeout for its own close. The caller holds
// c.mu.
func (c *Conn) stopReading() {
	c.over = true
	_ = c.nc.SetReadDeadline(time.Now().Add(closeTimeout))
	c.room.Broadcast()
}

// reserveFrame accounts for the next frame of an anonymous connection if it is large. The open
// performative set Options.MaxFrameSize for the whole connection, so a frame of that size is
// accepted even before a token, unless all connections together have reached their limit.
func (c *Conn) reserveFrame(largest uint32) error {
	head, err := c.in.Peek(4)
	if err != nil {
		return nil // the read of the frame returns err
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

// maxLinks, maxSessions and maxDetaching return the current limits. The caller holds c.mu.
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
