package server

import (
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// An Outgoing is a message that the application sends to the peer.
type Outgoing struct {
	Tag     []byte
	Format  uint32
	Settled bool
	Payload []byte
	Note    any // any value by which the application recognizes the message later
}

// A Sent is a message that was sent to the peer and that the peer has not settled.
type Sent struct {
	Link *Link
	Tag  []byte
	Note any
	id   uint32
}

// Room returns how many messages the link can send now. If the peer has granted credit and Room returns 0, Sender.Ready
// is called when there is room.
func (l *Link) Room() int {
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	return l.roomLocked()
}

func (l *Link) roomLocked() int {
	if l.state != attached || l.credit == 0 || l.unsettled >= l.conn.options.MaxUnsettled {
		return 0
	}
	if l.conn.out.size() > l.conn.bufferLimit(l.conn.options.OutBuffer) || len(l.session.pending) > 0 {
		l.conn.hungry[l] = struct{}{}
		return 0
	}
	return min(int(l.credit), l.conn.options.MaxUnsettled-l.unsettled)
}

// Credit returns the credit that the peer has granted and that is not used. Unlike Room, it does not depend on buffers.
func (l *Link) Credit() int {
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	if l.state != attached {
		return 0
	}
	return int(l.credit)
}

// Transfer sends a message, and reports whether the link had credit. Messages that the application has already
// requested from their source may exceed Room.
func (l *Link) Transfer(m Outgoing) bool {
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	if l.state != attached || l.credit == 0 {
		return false
	}
	l.credit--
	l.deliveryCount++
	s := l.session
	id := s.nextDelivery
	s.nextDelivery++
	if !m.Settled {
		s.sent[id] = &Sent{Link: l, Tag: m.Tag, Note: m.Note, id: id}
		l.unsettled++
	}
	t := &amqp.Transfer{Handle: l.handle, DeliveryID: &id, DeliveryTag: m.Tag, MessageFormat: &m.Format, Settled: &m.Settled}
	const overhead = 64 // bytes of a frame in addition to the tag and the payload
	largest := int(l.conn.frameSize) - overhead - len(m.Tag)
	for payload := m.Payload; ; {
		n := min(len(payload), largest)
		t.More = n < len(payload)
		f := pendingFrame{l, t, payload[:n]}
		if len(s.pending) == 0 && s.outgoingWindow > 0 {
			s.emitTransfer(f)
		} else {
			s.pending = append(s.pending, f)
			l.conn.pending += n
		}
		if payload = payload[n:]; len(payload) == 0 {
			l.conn.updateTotals()
			l.conn.endIfExhausted()
			return true
		}
		t = &amqp.Transfer{Handle: l.handle, Settled: &m.Settled}
	}
}

// Settle settles a message for which the peer has reported an outcome. It sends the final state to the peer.
func (s *Sent) Settle(state any) {
	l := s.Link
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	if l.state != attached || l.session.sent[s.id] != s {
		return
	}
	delete(l.session.sent, s.id)
	l.unsettled--
	l.session.emitFrame(&amqp.Disposition{Role: amqp.RoleSender, First: s.id, Settled: true, State: state}, nil)
}

// Drained uses up the remaining credit. This tells the peer that no more messages are available.
func (l *Link) Drained() {
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	if l.state != attached || !l.draining {
		return
	}
	l.draining = false
	l.deliveryCount += l.credit
	l.credit = 0
	handle, count, credit := l.handle, l.deliveryCount, l.credit
	s := l.session
	s.incomingLeft = incomingWindow
	s.emitFrame(&amqp.Flow{
		NextIncomingID: &s.nextIncoming, IncomingWindow: incomingWindow, NextOutgoingID: s.nextOutgoing, OutgoingWindow: 1<<31 - 1,
		Handle: &handle, DeliveryCount: &count, LinkCredit: &credit, Drain: true,
	}, nil)
}
