package server

import (
	"cmp"
	"sync/atomic"
)

// TotalLimits are the limits for all connections together. A zero value selects the default.
type TotalLimits struct {
	Sessions int   // default 65,536
	Links    int   // default 65,536
	Memory   int64 // bytes in the buffers of all connections; default 128 MB
}

// Totals counts the resources of several connections. It is safe for concurrent use.
type Totals struct {
	limits                  TotalLimits
	sessions, links, memory atomic.Int64
}

// NewTotals returns Totals with no resources in use.
func NewTotals(limits TotalLimits) *Totals {
	limits.Sessions = cmp.Or(limits.Sessions, 1<<16)
	limits.Links = cmp.Or(limits.Links, 1<<16)
	limits.Memory = cmp.Or(limits.Memory, 128<<20)
	return &Totals{limits: limits}
}

// Use is how much of each resource is in use.
type Use struct {
	Sessions, Links, Memory int64
}

// Use returns the current use.
func (t *Totals) Use() Use {
	return Use{Sessions: t.sessions.Load(), Links: t.links.Load(), Memory: t.memory.Load()}
}

// tryAcquire adds one to n, unless n is at its limit.
func tryAcquire(n *atomic.Int64, limit int) bool {
	if n.Add(1) > int64(limit) {
		n.Add(-1)
		return false
	}
	return true
}

func (t *Totals) isScarce() bool    { return t.memory.Load() > t.limits.Memory }
func (t *Totals) isExhausted() bool { return t.memory.Load() > 2*t.limits.Memory }

// scarceShare reduces the buffer limit of each connection to 1/scarceShare while memory is scarce. A connection that
// reaches this limit continues when its own peer reads or its messages are settled, independently of other connections.
const scarceShare = 16

// updateTotals updates Totals after the buffers of the connection have changed. The caller must hold c.mu.
func (c *Conn) updateTotals() {
	used := c.out.size() + c.unsettled + c.partial + c.pending + c.undecided + c.reading
	if delta := used - c.accounted; delta != 0 {
		c.accounted = used
		c.options.Totals.memory.Add(int64(delta))
	}
}

// bufferLimit returns how many bytes the connection may buffer now, at most limit. The caller must hold c.mu.
func (c *Conn) bufferLimit(limit int) int {
	switch {
	case !c.authorized:
		return min(limit, anonymousBuffer)
	case c.options.Totals.isScarce():
		return limit / scarceShare
	}
	return limit
}

// endIfExhausted ends the connection if it buffers more than Options.OutBuffer while all connections together buffer
// twice their limit. This can happen because messages were requested before memory was scarce. The caller must hold
// c.mu.
func (c *Conn) endIfExhausted() {
	if c.options.Totals.isExhausted() && c.accounted > c.options.OutBuffer {
		c.abortConn(memoryError())
	}
}
