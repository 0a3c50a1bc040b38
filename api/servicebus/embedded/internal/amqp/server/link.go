package server

import (
	"math"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

type linkState int

const (
	waiting  linkState = iota // the application has neither accepted nor refused the link
	attached                  // both sides are attached
	over                      // the link has ended
)

// A Link is a link that the peer has attached. Its methods are safe for concurrent use, do not
// block, and have no effect after the link has ended.
type Link struct {
	// Wants is the attach that the peer has sent. It must not be modified. It is nil after the link is accepted,
	// because an attach may need much more memory than a link.
	Wants *amqp.Attach

	// Name is the name that the peer gave to the link.
	Name string

	role     bool // role is the role of the peer on this link
	conn     *Conn
	session  *peerSession
	handle   uint32
	state    linkState
	whenGone []func()
	size     int // memory of Wants in bytes; 0 after Wants was released

	deliveryCount, credit uint32

	// These fields are used if the peer sends on the link.
	receiver  Receiver
	maxSize   uint64
	window    uint32    // window is the maximum number of unsettled messages
	busy      uint32    // busy is the number of messages that the application has not settled
	assembled *Delivery // assembled is the delivery of which a part has been received

	// These fields are used if the server sends on the link.
	sender    Sender
	draining  bool
	unsettled int
}

// PeerSends reports whether the peer sends the messages of this link, and the application receives them.
func (l *Link) PeerSends() bool { return l.role == amqp.RoleSender }

// WhenGone calls f when the link ends, or immediately if it has already ended.
func (l *Link) WhenGone(f func()) {
	l.conn.mu.Lock()
	if l.state != over {
		l.whenGone = append(l.whenGone, f)
		l.conn.mu.Unlock()
		return
	}
	l.conn.mu.Unlock()
	f()
}

const (
	// maxAttach is the maximum size of an attach in bytes. Clients need less than 2 KB.
	maxAttach = 16 << 10

	// maxLinkName is the maximum length of a link name in bytes.
	maxLinkName = 1 << 10

	// decodedFactor estimates the memory of a decoded attach, per byte of its frame. A list element of one byte needs
	// more memory when it is decoded.
	decodedFactor = 16
)

// attachLink starts a link for an attach of the peer. size is the size of the attach frame.
func (s *peerSession) attachLink(p *amqp.Attach, size int) *amqp.Error {
	switch {
	case size > maxAttach:
		return amqp.Errorf(amqp.ResourceLimitExceeded, "an attach of %d bytes; the largest is %d", size, maxAttach)
	case len(p.Name) > maxLinkName:
		return amqp.Errorf(amqp.InvalidField, "a link whose name has %d bytes; the longest is %d", len(p.Name), maxLinkName)
	case s.links[p.Handle] != nil || s.isLeaving(p.Handle):
		return amqp.Errorf(amqp.HandleInUse, "handle %d has a link already", p.Handle)
	case p.Handle > handleMax:
		return amqp.Errorf(amqp.NotAllowed, "handle %d: the largest is %d", p.Handle, handleMax)
	}
	c := s.conn
	l := &Link{Wants: p, Name: p.Name, role: p.Role, conn: c, session: s, handle: p.Handle, size: decodedFactor * size}
	s.links[p.Handle] = l
	c.links++
	c.undecided += l.size
	totals := c.options.Totals
	all := totals.links.Add(1)
	switch limit := c.maxLinks(); {
	case c.links > limit:
		l.sendRefusal(amqp.Errorf(amqp.ResourceLimitExceeded, "more than %d links on one connection", limit))
		return nil
	case all > int64(totals.limits.Links):
		l.sendRefusal(amqp.Errorf(amqp.ResourceLimitExceeded, "more than %d links on all connections", totals.limits.Links))
		return nil
	case totals.isScarce() && c.undecided > c.bufferLimit(c.options.InBuffer):
		l.sendRefusal(memoryError())
		return nil
	}
	if p.Role == amqp.RoleSender && p.InitialDeliveryCount != nil {
		l.deliveryCount = *p.InitialDeliveryCount
	}
	s.conn.callLater(func() { s.conn.peer.Attach(l) })
	return nil
}

// Terms are the parameters with which an application accepts a link.
type Terms struct {
	Source, Target any // the default is the source or target in Link.Wants
	Properties     amqp.Map
	MaxMessageSize uint64 // maximum size of a message from the peer
	Credit         uint32 // initial credit, if the peer sends
}

// Receive accepts a link on which the peer sends messages to the application.
func (l *Link) Receive(t Terms, r Receiver) {
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	if l.state != waiting {
		return
	}
	l.state, l.receiver, l.maxSize, l.window, l.credit = attached, r, t.MaxMessageSize, t.Credit, t.Credit
	a := l.attachAnswer(t)
	a.MaxMessageSize = t.MaxMessageSize
	l.releaseUndecided()
	l.session.emitFrame(a, nil)
	l.session.sendFlow(l)
}

// Send accepts a link on which the application sends messages to the peer.
func (l *Link) Send(t Terms, s Sender) {
	l.conn.mu.Lock()
	if l.state != waiting {
		l.conn.mu.Unlock()
		return
	}
	l.state, l.sender = attached, s
	a := l.attachAnswer(t)
	first := uint32(0)
	a.InitialDeliveryCount = &first
	l.releaseUndecided()
	l.session.emitFrame(a, nil)
	early, drain := l.credit > 0 || l.draining, l.draining
	l.conn.mu.Unlock()
	if early { // the peer granted credit before the application accepted the link
		s.Ready(drain)
	}
}

// releaseUndecided stops counting the memory of the attach, after the link was accepted or refused. The caller must
// hold c.mu.
func (l *Link) releaseUndecided() {
	l.conn.undecided -= l.size
	l.size = 0
	if l.state == attached {
		l.Wants = nil
	}
}

// attachAnswer returns the reply to the peer's attach: the same attach, changed by the terms.
func (l *Link) attachAnswer(t Terms) *amqp.Attach {
	a := &amqp.Attach{
		Name: l.Wants.Name, Handle: l.handle, Role: !l.Wants.Role,
		SenderSettle: l.Wants.SenderSettle, ReceiverSettle: l.Wants.ReceiverSettle,
		Source: l.Wants.Source, Target: l.Wants.Target, Properties: t.Properties,
	}
	if t.Source != nil {
		a.Source = t.Source
	}
	if t.Target != nil {
		a.Target = t.Target
	}
	return a
}

// Refuse refuses the link with the given error.
func (l *Link) Refuse(why *amqp.Error) {
	l.conn.mu.Lock()
	if l.state == waiting {
		l.sendRefusal(why)
	}
	l.conn.unlockAndCall()
}

func (l *Link) sendRefusal(why *amqp.Error) {
	a := l.attachAnswer(Terms{})
	if l.Wants.Role == amqp.RoleReceiver { // a null terminus of the server means that it refuses the link
		a.Source = nil
		first := uint32(0)
		a.InitialDeliveryCount = &first
	} else {
		a.Target = nil
	}
	l.session.emitFrame(a, nil)
	l.sendDetach(why)
}

// Detach ends the link. It sends the error to the peer.
func (l *Link) Detach(why *amqp.Error) {
	l.conn.mu.Lock()
	if l.state == attached {
		l.sendDetach(why)
	}
	l.conn.unlockAndCall()
}

// sendDetach ends the link and sends a detach. Until the peer replies with a detach, the server stores only the handle
// of the link.
func (l *Link) sendDetach(why *amqp.Error) {
	s, c := l.session, l.conn
	l.removeLink()
	s.leaving[l.handle] = struct{}{}
	c.detaching++
	s.emitFrame(&amqp.Detach{Handle: l.handle, Closed: true, Error: why}, nil)
	if limit := c.maxDetaching(); c.detaching > limit {
		c.abortConn(amqp.Errorf(amqp.ResourceLimitExceeded, "%d links have ended without a detach of the peer; answer a detach with a detach", limit))
	}
}

// removeLink ends the link and frees its handle.
func (l *Link) removeLink() {
	l.reportGone()
	delete(l.session.links, l.handle)
	l.conn.links--
	l.conn.options.Totals.links.Add(-1)
}

// handleDetach handles a detach that the peer sends, either to end a link or in reply.
func (s *peerSession) handleDetach(p *amqp.Detach) *amqp.Error {
	if s.isLeaving(p.Handle) {
		delete(s.leaving, p.Handle)
		s.conn.detaching--
		return nil
	}
	l := s.links[p.Handle]
	if l == nil {
		return amqp.Errorf(amqp.UnattachedHandle, "a detach of handle %d, which has no link", p.Handle)
	}
	s.emitFrame(&amqp.Detach{Handle: p.Handle, Closed: true}, nil)
	l.removeLink()
	return nil
}

// reportGone releases the resources of the link and calls the functions passed to WhenGone.
func (l *Link) reportGone() {
	if l.state == over {
		return
	}
	l.state = over
	l.releaseUndecided()
	delete(l.conn.hungry, l)
	s := l.session
	if len(s.pending) > 0 {
		kept := s.pending[:0]
		for _, f := range s.pending {
			if f.link != l {
				kept = append(kept, f)
			} else {
				l.conn.pending -= len(f.payload)
			}
		}
		s.pending = kept
	}
	if l.unsettled > 0 {
		for id, sent := range s.sent {
			if sent.Link == l {
				delete(s.sent, id)
			}
		}
	}
	if d := l.assembled; d != nil {
		l.conn.partial -= d.size
		l.assembled = nil
	}
	for _, f := range l.whenGone {
		l.conn.callLater(f)
	}
	l.whenGone = nil
}

// applyFlow applies the link state that the peer has sent.
func (l *Link) applyFlow(p *amqp.Flow) {
	if l.role == amqp.RoleSender {
		if p.DeliveryCount != nil && l.state == attached { // the peer may have used up its credit by a drain
			l.credit -= min(l.credit, distance(*p.DeliveryCount, l.deliveryCount))
			l.deliveryCount = *p.DeliveryCount
		}
		if l.state == attached && !l.topUpCredit() && p.Echo {
			l.session.sendFlow(l)
		}
		return
	}
	if p.LinkCredit != nil {
		seen := uint32(0) // seen defaults to the initial delivery count
		if p.DeliveryCount != nil {
			seen = *p.DeliveryCount
		}
		l.credit = distance(seen+min(*p.LinkCredit, math.MaxInt32), l.deliveryCount)
	}
	l.draining = p.Drain
	if l.state != attached {
		return
	}
	if p.Echo && !p.Drain {
		l.session.sendFlow(l)
	}
	l.conn.callLater(func() { l.sender.Ready(p.Drain) })
}
