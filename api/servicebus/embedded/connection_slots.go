package embedded

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// connectionSlots bounds the number of connections. Its fields are guarded by the mutex of the
// namespace.
type connectionSlots struct {
	limit, networkLimit int
	used, network       int
	full                clock.Interval
	anonymous           *list.List // of *connectionSlot: network connections without a valid token, oldest first
}

func newConnectionSlots(limit, networkLimit int) connectionSlots {
	return connectionSlots{limit: limit, networkLimit: networkLimit, anonymous: list.New(), full: clock.Interval{Every: time.Minute}}
}

func (p *connectionSlots) isFull() bool          { return p.used >= p.limit }
func (p *connectionSlots) isFullToNetwork() bool { return p.isFull() || p.network >= p.networkLimit }

// errFull is the error of Dial when all connections are taken.
var errFull = errors.New("too many connections")

// beginOwn counts a connection of this process. The caller calls release when it ends.
func (n *Namespace) beginOwn() (release func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, ErrClosed
	case n.places.isFull():
		return nil, fmt.Errorf("%w: %d, which is the maximum; close one, or raise MaxConnections", errFull, n.places.limit)
	}
	n.places.used++
	n.connections.Add(1)
	return func() {
		n.mu.Lock()
		n.places.used--
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

// beginNetwork counts a network connection, which closeConn closes. If all slots are taken, it
// closes and replaces the oldest connection without a valid token. It returns nil if no such
// connection exists.
func (n *Namespace) beginNetwork(closeConn func()) *connectionSlot {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	closeReplaced := func() {}
	isFull := n.places.isFullToNetwork()
	if oldest := n.places.anonymous.Front(); oldest != nil && isFull {
		replaced := oldest.Value.(*connectionSlot) //nolint:forcetypeassert // the list has no others
		replaced.freeSlot()
		closeReplaced = replaced.closeConn
		n.meter.replaced.Add(1)
	}
	var p *connectionSlot
	if !n.places.isFullToNetwork() {
		p = &connectionSlot{namespace: n, closeConn: closeConn}
		p.anonymous = n.places.anonymous.PushBack(p)
		n.places.used++
		n.places.network++
		n.connections.Add(1)
	}
	logs := isFull && n.places.full.TryStart(time.Now())
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

// freeSlot releases the slot. The caller holds the mutex of the namespace.
func (p *connectionSlot) freeSlot() {
	if p.freed {
		return
	}
	p.freed = true
	p.forgetAnonymous()
	p.namespace.places.used--
	p.namespace.places.network--
}

// forgetAnonymous prevents the connection from being replaced. The caller holds the mutex of
// the namespace.
func (p *connectionSlot) forgetAnonymous() {
	if p.anonymous != nil {
		p.namespace.places.anonymous.Remove(p.anonymous)
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
