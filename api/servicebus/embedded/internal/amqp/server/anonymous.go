package server

import (
	"encoding/binary"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// The limits of a connection before Conn.Authorize is called. They suffice for any client that presents a token: a
// client needs two links in one session, and some clients start other sessions at the same time.
const (
	anonymousFrameSize = 16 << 10 // the memory of larger frames is counted while they are read
	anonymousSessions  = 64
	anonymousLinks     = 16
	anonymousDetaching = 16
	anonymousBuffer    = 16 << 10
)

// closeTimeout is the time in which the peer must answer a close.
const closeTimeout = time.Second

// Authorize lifts the limits of an anonymous connection. The application calls it when the peer has presented a valid
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

// limitAnonymousTime ends the connection if it is not authorized within TokenTimeout. The caller calls stop at the end
// of the connection.
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

// abortConn ends the connection because of an error: it sends a close, and all input before the
// peer's close is ignored. The caller holds c.mu.
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

// stopReading ends reading after closeTimeout, in which the peer can send its own close. The caller holds c.mu.
func (c *Conn) stopReading() {
	c.over = true
	_ = c.nc.SetReadDeadline(time.Now().Add(closeTimeout))
	c.room.Broadcast()
}

// reserveFrame counts the memory of the next frame of an anonymous connection, if the frame is
// large. The open performative announces Options.MaxFrameSize for the whole connection, so a frame
// of this size is accepted even before the peer presents a token, unless all connections together
// have reached their limit.
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

// maxLinks returns the current limit for links. The caller of maxLinks, maxSessions and maxDetaching
// holds c.mu.
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
