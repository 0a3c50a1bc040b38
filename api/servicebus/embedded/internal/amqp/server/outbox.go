package server

import (
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// An outbox buffers the bytes that the server will write. The mutex of the connection guards its fields.
type outbox struct {
	waiting []byte
	spare   []byte        // memory that has been written and can be reused
	writing int           // number of bytes that are being written to the socket
	wake    chan struct{} // holds one
	sealed  bool          // after sealed is set, no frames are added; the writer writes the rest and ends
	failed  error
}

func (b *outbox) size() int { return len(b.waiting) + b.writing }

func (b *outbox) wakeWriter() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// emitFrame appends a frame to the outbox. The caller must hold c.mu.
func (c *Conn) emitFrame(channel uint16, p amqp.Performative, payload []byte) {
	if c.out.sealed || c.out.failed != nil {
		return
	}
	if c.options.Frames != nil {
		c.options.Frames(c.ID, true, channel, p, len(payload))
	}
	c.out.waiting = amqp.AppendFrame(c.out.waiting, amqp.FrameAMQP, channel, p, payload)
	c.updateTotals()
	c.out.wakeWriter()
}

// runWriter writes the contents of the outbox until the outbox is sealed and empty, or a write fails.
func (c *Conn) runWriter(done *sync.WaitGroup) {
	defer done.Done()
	const never = time.Duration(1<<63 - 1)
	beat := time.NewTimer(never)
	defer beat.Stop()
	for {
		chunk, sealed, every := c.nextChunk()
		if every > 0 {
			beat.Reset(every)
		}
		if len(chunk) > 0 {
			err := c.prepareWrite()
			if err == nil {
				_, err = c.nc.Write(chunk)
			}
			c.recordWritten(err)
			if err != nil {
				return
			}
			continue
		}
		if sealed {
			return
		}
		select {
		case <-c.out.wake:
		case <-beat.C:
			c.mu.Lock()
			c.emitFrame(0, nil, nil) // an empty frame keeps the connection alive
			c.mu.Unlock()
		}
	}
}

// prepareWrite sets the deadline of the next write.
func (c *Conn) prepareWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	timeout := c.options.StallTimeout
	if c.aborted != nil {
		timeout = closeTimeout
	}
	return c.nc.SetWriteDeadline(time.Now().Add(timeout))
}

// nextChunk removes all bytes from the outbox and returns them. every is the time between heartbeats.
func (c *Conn) nextChunk() (chunk []byte, sealed bool, every time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chunk = c.out.waiting
	c.out.waiting, c.out.spare = c.out.spare[:0], chunk
	c.out.writing = len(chunk)
	return chunk, c.out.sealed, c.heartbeat
}

// recordWritten records that a write has ended, and wakes the goroutines that wait for room.
func (c *Conn) recordWritten(err error) {
	c.mu.Lock()
	const worthKeeping = 256 << 10
	c.out.writing = 0
	if cap(c.out.spare) > worthKeeping {
		c.out.spare = nil
	}
	if err != nil {
		c.out.failed = err
		_ = c.nc.Close() // ends reading
	}
	c.updateTotals()
	c.room.Broadcast()
	ready := c.linksWithRoom()
	c.mu.Unlock()
	for _, l := range ready {
		l.sender.Ready(false)
	}
}
