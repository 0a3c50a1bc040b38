package embedded

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// connectionSlots limits the number of connections. The mutex of the namespace guards the fields.
type connectionSlots struct {
	limit, networkLimit int
	used, network       int
	full                clock.Interval
	anonymous           *list.List // *connectionSlot values: network connections that have not presented a valid token, oldest first
}

func newConnectionSlots(limit, networkLimit int) connectionSlots {
	return connectionSlots{limit: limit, networkLimit: networkLimit, anonymous: list.New(), full: clock.Interval{Every: time.Minute}}
}

func (p *connectionSlots) isFull() bool          { return p.used >= p.limit }
func (p *connectionSlots) isFullToNetwork() bool { return p.isFull() || p.network >= p.networkLimit }

// errFull is the error of Dial when the maximum number of connections is reached.
var errFull = errors.New("too many connections")

// beginInProcess counts an in-process connection. The caller must call release when the connection ends.
func (n *Namespace) beginInProcess() (release func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, ErrClosed
	case n.slots.isFull():
		return nil, fmt.Errorf("%w: %d, which is the maximum; close one, or raise MaxConnections", errFull, n.slots.limit)
	}
	n.slots.used++
	n.connections.Add(1)
	return func() {
		n.mu.Lock()
		n.slots.used--
		n.mu.Unlock()
		n.connections.Done()
	}, nil
}

// A connectionSlot belongs to one network connection.
type connectionSlot struct {
	namespace *Namespace
	closeConn func()
	anonymous *list.Element // nil after the connection has presented a valid token or was replaced
	freed     bool
	ended     sync.Once
}

// beginNetwork returns a slot for a network connection; closeConn closes the connection. If no slot is free,
// beginNetwork closes the oldest connection without a valid token and reuses its slot. It returns nil if every
// connection has presented a valid token, or if the namespace is closed.
func (n *Namespace) beginNetwork(closeConn func()) *connectionSlot {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	closeReplaced := func() {}
	isFull := n.slots.isFullToNetwork()
	if oldest := n.slots.anonymous.Front(); oldest != nil && isFull {
		replaced := oldest.Value.(*connectionSlot) //nolint:forcetypeassert // the list has no others
		replaced.freeSlot()
		closeReplaced = replaced.closeConn
		n.meter.replaced.Add(1)
	}
	var p *connectionSlot
	if !n.slots.isFullToNetwork() {
		p = &connectionSlot{namespace: n, closeConn: closeConn}
		p.anonymous = n.slots.anonymous.PushBack(p)
		n.slots.used++
		n.slots.network++
		n.connections.Add(1)
	}
	logs := isFull && n.slots.full.TryStart(time.Now())
	n.mu.Unlock()
	closeReplaced()
	if p == nil {
		n.meter.refused.Add(1)
	}
	if logs {
		n.options.Logger.Warn("network clients of the bus have reached their limit of connections; new connections replace those without a valid token, or are closed",
			"limit", n.options.MaxNetworkConnections, "replaced", n.meter.replaced.Load(), "refused", n.meter.refused.Load())
	}
	return p
}

// freeSlot releases the slot. The caller must hold the mutex of the namespace.
func (p *connectionSlot) freeSlot() {
	if p.freed {
		return
	}
	p.freed = true
	p.forgetAnonymous()
	p.namespace.slots.used--
	p.namespace.slots.network--
}

// forgetAnonymous removes the connection from the anonymous connections, which may be replaced. The caller must hold
// the mutex of the namespace.
func (p *connectionSlot) forgetAnonymous() {
	if p.anonymous != nil {
		p.namespace.slots.anonymous.Remove(p.anonymous)
		p.anonymous = nil
	}
}

// recordAuthorized records that the connection has presented a valid token.
func (p *connectionSlot) recordAuthorized() {
	p.namespace.mu.Lock()
	defer p.namespace.mu.Unlock()
	p.forgetAnonymous()
}

// endConnection records that the connection has ended. A second call does nothing.
func (p *connectionSlot) endConnection() {
	p.ended.Do(func() {
		p.namespace.mu.Lock()
		p.freeSlot()
		p.namespace.mu.Unlock()
		p.namespace.connections.Done()
	})
}
