package server

import "github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"

// applyDisposition applies the delivery states that the peer reports, for messages in either direction.
func (s *peerSession) applyDisposition(p *amqp.Disposition) {
	last := p.First
	if p.Last != nil {
		last = *p.Last
	}
	if p.Role == amqp.RoleSender {
		return // the server has already settled these messages
	}
	eachInRange(s.sent, p.First, last, func(id uint32, sent *Sent) {
		if p.Settled {
			delete(s.sent, id)
			sent.Link.unsettled--
		}
		s.conn.callLater(func() { sent.Link.sender.Disposed(sent, p.State, p.Settled) })
	})
}

// eachInRange visits the entries of m from first to last. The range may contain far more ids than the map.
func eachInRange[T any](m map[uint32]T, first, last uint32, visit func(uint32, T)) {
	size := last - first
	if uint64(size) >= uint64(len(m)) {
		for id, v := range m {
			if id-first <= size {
				visit(id, v)
			}
		}
		return
	}
	for id := first; ; id++ {
		if v, ok := m[id]; ok {
			visit(id, v)
		}
		if id == last {
			return
		}
	}
}
