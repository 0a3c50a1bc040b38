package server

import "github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"

// A Delivery is a message that the peer has sent.
type Delivery struct {
	Tag     []byte
	Format  uint32
	Settled bool // Settled is true if the peer sent the message as settled, so it expects no outcome
	Payload []byte
	State   any // State is nil unless the message belongs to a transaction

	link *Link
	id   uint32
	size int // size is counted against the buffer limit: the larger of the frames and the memory of the message
	done bool
}

// maxTag is the maximum length of a delivery tag in bytes, as AMQP specifies.
const maxTag = 32

// receiveTransfer receives a message or a part of a message. frameSize is the size of its frame.
func (l *Link) receiveTransfer(p *amqp.Transfer, payload []byte, frameSize int) {
	d, fault := l.deliveryOf(p)
	if fault != nil {
		l.sendDetach(fault)
		return
	}
	if p.Aborted {
		l.conn.partial -= d.size
		l.assembled = nil
		l.deliveryCount++
		l.credit--
		l.topUpCredit()
		return
	}
	size := uint64(len(d.Payload)) + uint64(len(payload))
	switch {
	case l.maxSize > 0 && size > l.maxSize:
		l.rejectAndDetach(d, amqp.Errorf(amqp.MessageSizeExceeded, "a message of more than %d bytes", l.maxSize))
		return
	case p.More && l.conn.partial > l.conn.bufferLimit(l.conn.options.InBuffer):
		l.rejectAndDetach(d, amqp.Errorf(amqp.ResourceLimitExceeded, "too many partly received messages"))
		return
	}
	l.conn.partial -= d.size
	d.size += frameSize
	if d.Payload == nil {
		d.Payload = payload
	} else {
		d.Payload = append(d.Payload, payload...)
		d.size = max(d.size, cap(d.Payload))
	}
	if p.More {
		l.conn.partial += d.size
		return
	}
	l.conn.unsettled += d.size
	l.assembled = nil
	l.deliveryCount++
	l.credit--
	l.busy++
	l.conn.callLater(func() { l.receiver.Delivered(d) })
}

// rejectAndDetach rejects a delivery that is too large, and then detaches the link. Some clients, such as Azure's Node
// client, ignore a detach and wait for the outcome until a timeout, so the rejection is needed.
func (l *Link) rejectAndDetach(d *Delivery, why *amqp.Error) {
	if !d.Settled {
		l.session.emitFrame(&amqp.Disposition{Role: amqp.RoleReceiver, First: d.id, Settled: true, State: amqp.Rejected{Error: why}}, nil)
	}
	l.sendDetach(why)
}

// deliveryOf returns the delivery to which a transfer belongs.
func (l *Link) deliveryOf(p *amqp.Transfer) (*Delivery, *amqp.Error) {
	d := l.assembled
	switch {
	case l.state != attached || l.receiver == nil:
		return nil, amqp.Errorf(amqp.NotAllowed, "a transfer on a link on which the server sends")
	case d != nil && p.DeliveryID != nil && *p.DeliveryID != d.id:
		return nil, amqp.Errorf(amqp.InvalidField, "message %d begins before message %d is complete", *p.DeliveryID, d.id)
	case d == nil && l.credit == 0:
		return nil, amqp.Errorf(amqp.TransferLimitExceeded, "a transfer without credit")
	case len(p.DeliveryTag) > maxTag:
		return nil, amqp.Errorf(amqp.InvalidField, "a delivery tag of %d bytes; the longest is %d", len(p.DeliveryTag), maxTag)
	case d == nil && p.DeliveryID == nil:
		return nil, amqp.Errorf(amqp.InvalidField, "the first transfer of a message has no delivery id")
	case d == nil:
		d = &Delivery{link: l, id: *p.DeliveryID, Tag: p.DeliveryTag, State: p.State}
		if p.MessageFormat != nil {
			d.Format = *p.MessageFormat
		}
		l.assembled = d
	}
	if p.Settled != nil && *p.Settled {
		d.Settled = true
	}
	return d, nil
}

// topUpCredit grants credit after half of the last credit is used. It reports whether it did.
func (l *Link) topUpCredit() bool {
	if l.state != attached || l.credit+l.busy > l.window/2 {
		return false
	}
	l.credit = l.window - l.busy
	l.session.sendFlow(l)
	return true
}

// finishDelivery ends a delivery, so that the peer may send one more.
func (l *Link) finishDelivery() {
	l.busy--
	l.topUpCredit()
}

// Settle settles the message and reports its outcome to the peer. It does so even if the peer requested that the sender
// settles first, because clients expect what Service Bus does. Only the first call has an effect.
func (d *Delivery) Settle(state any) {
	l := d.link
	c := l.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.done {
		return
	}
	d.done = true
	c.unsettled -= d.size
	d.Payload = nil
	c.updateTotals()
	c.room.Broadcast()
	if l.state != attached {
		return
	}
	if !d.Settled {
		l.session.emitFrame(&amqp.Disposition{Role: amqp.RoleReceiver, First: d.id, Settled: true, State: state}, nil)
	}
	l.finishDelivery()
}
