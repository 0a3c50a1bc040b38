package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// largestSASL is the maximum size of a frame during the SASL handshake.
const largestSASL = 4096

// negotiate agrees on the protocol and opens the connection.
func (c *Conn) negotiate() error {
	if err := c.nc.SetReadDeadline(time.Now().Add(c.options.StallTimeout)); err != nil {
		return err
	}
	header, err := c.readHeader()
	if err != nil {
		return err
	}
	if header == amqp.HeaderSASL {
		if err := c.authenticateSASL(); err != nil {
			return err
		}
		if header, err = c.readHeader(); err != nil {
			return err
		}
	}
	if header != amqp.HeaderAMQP {
		c.writeRaw(amqp.HeaderSASL[:]) // tell the peer which protocol is supported
		return fmt.Errorf("the peer speaks %q, not AMQP 1.0", header[:])
	}
	c.writeRaw(amqp.HeaderAMQP[:])
	frame, err := amqp.ReadFrame(c.in, amqp.MinMaxFrameSize*8)
	if err != nil {
		return err
	}
	p, _, err := amqp.ReadPerformative(frame.Body)
	if err != nil {
		return err
	}
	open, ok := p.(*amqp.Open)
	if !ok {
		return fmt.Errorf("the first frame is a %T, not an open", p)
	}
	return c.openConn(open)
}

func (c *Conn) readHeader() (h amqp.Header, err error) {
	_, err = io.ReadFull(c.in, h[:])
	return h, err
}

// writeRaw writes bytes without a frame.
func (c *Conn) writeRaw(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.waiting = append(c.out.waiting, b...)
	c.out.wakeWriter()
}

func (c *Conn) authenticateSASL() error {
	c.writeRaw(amqp.AppendFrame(bytes.Clone(amqp.HeaderSASL[:]), amqp.FrameSASL, 0,
		&amqp.Mechanisms{Names: []amqp.Symbol{"MSSBCBS", "ANONYMOUS", "PLAIN", "EXTERNAL"}}, nil))
	frame, err := amqp.ReadFrame(c.in, largestSASL)
	if err != nil {
		return err
	}
	p, _, err := amqp.ReadPerformative(frame.Body)
	if err != nil {
		return err
	}
	init, ok := p.(*amqp.Init)
	if !ok || frame.Type != amqp.FrameSASL {
		return fmt.Errorf("a %T where SASL wants an init", p)
	}
	const welcome, denied = 0, 1
	code := uint8(welcome)
	if !c.isAccepted(init) {
		code = denied
	}
	c.writeRaw(amqp.AppendFrame(nil, amqp.FrameSASL, 0, &amqp.Outcome{Code: code}, nil))
	if code == denied {
		return errors.New("the name or the password is wrong")
	}
	return nil
}

// isAccepted reports whether the peer may connect. A peer that authenticates as anonymous may connect, because it
// presents a token later.
func (c *Conn) isAccepted(init *amqp.Init) bool {
	if init.Mechanism != "PLAIN" {
		return init.Mechanism == "ANONYMOUS" || init.Mechanism == "MSSBCBS" || init.Mechanism == "EXTERNAL"
	}
	parts := bytes.Split(init.Response, []byte{0})
	if len(parts) != 3 {
		return false
	}
	c.User = string(parts[1])
	return c.options.Authenticate == nil || c.options.Authenticate(c.User, string(parts[2]))
}

func (c *Conn) openConn(p *amqp.Open) error {
	if c.options.Frames != nil {
		c.options.Frames(c.ID, false, 0, p, 0)
	}
	c.mu.Lock()
	c.frameSize = max(p.MaxFrameSize, amqp.MinMaxFrameSize)
	c.frameSize = min(c.frameSize, 1<<20) // larger frames have no advantage
	c.heartbeat = time.Duration(p.IdleTimeOut) * time.Millisecond / 2
	c.opened = true
	c.emitFrame(0, &amqp.Open{
		ContainerID: c.options.ContainerID, MaxFrameSize: c.options.MaxFrameSize,
		ChannelMax:  uint16(c.options.MaxSessions - 1),            //nolint:gosec // bounded by withDefaults
		IdleTimeOut: uint32(c.options.IdleTimeOut.Milliseconds()), //nolint:gosec // minutes
	}, nil)
	c.mu.Unlock()
	c.peer = c.app.Connected(c)
	return nil
}
