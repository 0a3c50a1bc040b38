package server

import (
	"math"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

const (
	// incomingWindow is the number of transfers that the peer may send before the server opens the window again.
	incomingWindow = 5000

	// handleMax is the largest handle that the peer may use for a link.
	handleMax = 4095
)

// A peerSession is a session that the peer has begun. Because only the peer begins sessions and links, both sides use
// the peer's channel numbers and handles. The mutex of the connection guards the fields.
type peerSession struct {
	conn    *Conn
	channel uint16
	links   map[uint32]*Link
	leaving map[uint32]struct{} // handles of ended links whose detach the peer has not yet sent
	ending  bool                // the server has sent an end, and waits for the peer's end

	nextIncoming, nextOutgoing   uint32 // ids of the next transfers in each direction
	incomingLeft, outgoingWindow uint32 // transfers that each side may still send
	nextDelivery                 uint32

	pending []pendingFrame   // transfers that wait until the peer opens its window
	sent    map[uint32]*Sent // messages that the peer has not settled
}

type pendingFrame struct {
	link     *Link
	transfer *amqp.Transfer
	payload  []byte
}

func (c *Conn) beginSession(channel uint16, p *amqp.Begin) error {
	if c.sessions[channel] != nil {
		return amqp.Errorf(amqp.NotAllowed, "channel %d has a session already", channel)
	}
	if int(channel) >= c.options.MaxSessions {
		return amqp.Errorf(amqp.FramingError, "channel %d: the largest is %d", channel, c.options.MaxSessions-1)
	}
	if limit := c.maxSessions(); len(c.sessions) >= limit {
		return amqp.Errorf(amqp.ResourceLimitExceeded, "more than %d sessions before a token", limit)
	}
	if totals := c.options.Totals; !tryAcquire(&totals.sessions, totals.limits.Sessions) {
		return amqp.Errorf(amqp.ResourceLimitExceeded, "more than %d sessions on all connections", totals.limits.Sessions)
	}
	s := &peerSession{
		conn: c, channel: channel, links: map[uint32]*Link{}, leaving: map[uint32]struct{}{},
		nextIncoming: p.NextOutgoingID, incomingLeft: incomingWindow, outgoingWindow: p.IncomingWindow,
		sent: map[uint32]*Sent{},
	}
	c.sessions[channel] = s
	c.emitFrame(channel, &amqp.Begin{
		RemoteChannel: &channel, NextOutgoingID: s.nextOutgoing, IncomingWindow: incomingWindow, OutgoingWindow: math.MaxInt32,
		HandleMax: min(handleMax, p.HandleMax),
	}, nil)
	return nil
}

// handleFrame handles a performative; size is the size of its frame. If it returns an error, the session ends.
func (s *peerSession) handleFrame(p amqp.Performative, payload []byte, size int) *amqp.Error {
	switch p := p.(type) {
	case *amqp.Attach:
		return s.attachLink(p, size)
	case *amqp.Flow:
		return s.applyFlow(p)
	case *amqp.Transfer:
		return s.receiveTransfer(p, payload, size)
	case *amqp.Disposition:
		s.applyDisposition(p)
		return nil
	case *amqp.Detach:
		return s.handleDetach(p)
	case *amqp.End:
		s.emitFrame(&amqp.End{}, nil)
		s.removeSession()
		return nil
	}
	return amqp.Errorf(amqp.NotAllowed, "a %T within a session", p)
}

func (s *peerSession) emitFrame(p amqp.Performative, payload []byte) {
	s.conn.emitFrame(s.channel, p, payload)
}

// endWithFault ends the session because the peer has made an error.
func (s *peerSession) endWithFault(fault *amqp.Error) {
	s.endLinks()
	s.ending = true
	s.emitFrame(&amqp.End{Error: fault}, nil)
}

// endLinks ends all links without sending a detach.
func (s *peerSession) endLinks() {
	for _, l := range s.links {
		l.reportGone()
	}
	s.conn.links -= len(s.links)
	s.conn.options.Totals.links.Add(-int64(len(s.links)))
	clear(s.links)
	s.conn.detaching -= len(s.leaving)
	clear(s.leaving)
	s.pending = nil // reportGone has already subtracted the size of these frames
	clear(s.sent)
}

// removeSession ends all links without sending a detach, and frees the channel.
func (s *peerSession) removeSession() {
	s.endLinks()
	delete(s.conn.sessions, s.channel)
	s.conn.options.Totals.sessions.Add(-1)
}

// isLeaving reports whether the link with a handle has ended and the peer has not yet detached it.
func (s *peerSession) isLeaving(handle uint32) bool {
	_, leaving := s.leaving[handle]
	return leaving
}

// applyFlow applies the window of a session, and the credit of a link, that the peer has sent.
func (s *peerSession) applyFlow(p *amqp.Flow) *amqp.Error {
	next := uint32(0) // default, for a flow that the peer sent before it received the server's begin
	if p.NextIncomingID != nil {
		next = *p.NextIncomingID
	}
	s.outgoingWindow = distance(next+p.IncomingWindow, s.nextOutgoing)
	s.sendPending()
	if p.Handle == nil {
		if p.Echo {
			s.sendFlow(nil)
		}
		return nil
	}
	l := s.links[*p.Handle]
	if l == nil && s.isLeaving(*p.Handle) {
		return nil
	}
	if l == nil {
		return amqp.Errorf(amqp.UnattachedHandle, "a flow for handle %d, which has no link", *p.Handle)
	}
	l.applyFlow(p)
	return nil
}

// distance returns a - b, or 0 if a is before b. The numbers wrap around.
func distance(a, b uint32) uint32 {
	if d := a - b; d <= math.MaxInt32 {
		return d
	}
	return 0
}

// sendFlow sends the state of the session, and of l if it is not nil.
func (s *peerSession) sendFlow(l *Link) {
	s.incomingLeft = incomingWindow
	f := &amqp.Flow{
		NextIncomingID: &s.nextIncoming, IncomingWindow: incomingWindow,
		NextOutgoingID: s.nextOutgoing, OutgoingWindow: math.MaxInt32,
	}
	if l != nil {
		handle, count, credit := l.handle, l.deliveryCount, l.credit
		f.Handle, f.DeliveryCount, f.LinkCredit = &handle, &count, &credit
	}
	s.emitFrame(f, nil)
}

// sendPending sends pending transfers, as far as the peer's window allows.
func (s *peerSession) sendPending() {
	n := 0
	for n < len(s.pending) && s.outgoingWindow > 0 {
		f := s.pending[n]
		s.pending[n] = pendingFrame{}
		s.conn.pending -= len(f.payload)
		s.emitTransfer(f)
		n++
	}
	if s.pending = s.pending[n:]; len(s.pending) == 0 {
		s.pending = nil
		for _, l := range s.conn.linksWithRoom() {
			s.conn.callLater(func() { l.sender.Ready(false) })
		}
	}
}

func (s *peerSession) emitTransfer(f pendingFrame) {
	s.nextOutgoing++
	s.outgoingWindow--
	s.emitFrame(f.transfer, f.payload)
}

// receiveTransfer receives a message or a part of a message.
func (s *peerSession) receiveTransfer(p *amqp.Transfer, payload []byte, size int) *amqp.Error {
	if s.incomingLeft == 0 {
		return amqp.Errorf(amqp.WindowViolation, "more than %d transfers in a window", incomingWindow)
	}
	s.nextIncoming++
	s.incomingLeft--
	l := s.links[p.Handle]
	if l == nil && !s.isLeaving(p.Handle) {
		return amqp.Errorf(amqp.UnattachedHandle, "a transfer for handle %d, which has no link", p.Handle)
	}
	if l != nil {
		l.receiveTransfer(p, payload, size)
	}
	if s.incomingLeft <= incomingWindow/2 {
		s.sendFlow(nil)
	}
	return nil
}
