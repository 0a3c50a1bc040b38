package embedded

import (
	"fmt"
	"sync/atomic"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// usageMeter counts frames and messages.
type usageMeter struct {
	connections, closed         atomic.Int64
	refused, replaced           atomic.Int64
	framesIn, framesOut         atomic.Int64
	transfersIn, transfersOut   atomic.Int64
	transferredIn, transferdOut atomic.Int64
}

// Stats are the statistics of a namespace. Some are counts since the namespace was opened, the rest are current values.
type Stats struct {
	Connections                 int64 // current connections
	Refused, Replaced           int64 // network connections that were refused or replaced because no slot was free
	Links, Sessions             int64 // current AMQP links and sessions
	Buffered                    int64 // current bytes in the buffers of all connections
	FramesIn, FramesOut         int64
	TransfersIn, TransfersOut   int64 // frames that contain messages
	BytesIn, BytesOut           int64 // bytes of messages
	Entities                    int
	Active, Scheduled, Deferred int64 // current messages in all entities
	DeadLetters                 int64
}

// Stats returns the current statistics of the namespace.
func (n *Namespace) Stats() Stats {
	m := &n.meter
	s := Stats{
		Connections: m.connections.Load() - m.closed.Load(),
		FramesIn:    m.framesIn.Load(), FramesOut: m.framesOut.Load(),
		TransfersIn: m.transfersIn.Load(), TransfersOut: m.transfersOut.Load(),
		BytesIn: m.transferredIn.Load(), BytesOut: m.transferdOut.Load(),
	}
	use := n.totals.Use()
	s.Refused, s.Replaced = m.refused.Load(), m.replaced.Load()
	s.Links, s.Sessions, s.Buffered = use.Links, use.Sessions, use.Memory
	for _, e := range n.bus.Entities() {
		s.Entities++
		if counts, err := n.bus.Counts(e.Path); err == nil && e.Kind != "topic" {
			s.Active += counts.Active
			s.Scheduled += counts.Scheduled
			s.Deferred += counts.Deferred
			s.DeadLetters += counts.DeadLetter + counts.TransferDeadLetter
		}
	}
	return s
}

// frameObserver returns a function that counts frames and calls Options.Frames.
func (n *Namespace) frameObserver() func(uint64, bool, uint16, amqp.Performative, int) {
	return func(connection uint64, out bool, channel uint16, p amqp.Performative, payload int) {
		frames, transfers, bytes, arrow := &n.meter.framesIn, &n.meter.transfersIn, &n.meter.transferredIn, "<-"
		if out {
			frames, transfers, bytes, arrow = &n.meter.framesOut, &n.meter.transfersOut, &n.meter.transferdOut, "->"
		}
		frames.Add(1)
		if _, ok := p.(*amqp.Transfer); ok {
			transfers.Add(1)
			bytes.Add(int64(payload))
		}
		if n.options.Frames != nil {
			n.options.Frames(fmt.Sprintf("%d %s %d %s +%d", connection, arrow, channel, amqp.Describe(p), payload))
		}
	}
}

// DeadLetters returns the number of dead letters of a queue. The result is false if the queue does not exist.
func (n *Namespace) DeadLetters(queue string) (int64, bool) {
	counts, err := n.bus.Counts(queue)
	return counts.DeadLetter, err == nil
}
