package server

import (
	"cmp"
	"sync/atomic"
)

// TotalLimits are the limits of what connections use together. A zero limit
// has its default.
type TotalLimits struct {
	Sessions int   // default 65,536
	Links    int   // default 65,536
	Memory   int64 // bytes that connections buffer; default 128 MB
}

// Totals counts what connections use together. It is safe for concurrent use.
type Totals struct {
	limits                  TotalLimits
	sessions, links, memory atomic.Int64
}

// NewTotals returns Totals without any use.
func NewTotals(limits TotalLimits) *Totals {
	limits.Sessions = cmp.Or(limits.Sessions, 1<<16)
	limits.Links = cmp.Or(limits.Links, 1<<16)
	limits.Memory = cmp.Or(limits.Memory, 128<<20)
	return &Totals{limits: limits}
}

// Use is what connections use at one time.
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

// While memory is scarce, a connection buffers 1/scarceShare of what it may
// otherwise. It waits only for progress of its own: for the peer to read, and
// for the application to settle.
const scarceShare = 16

// updateTotals adds the change of what the connection buffers to the totals. The
// caller holds c.mu.
func (c *Conn) updateTotals() {
	used := c.out.size() + c.unsettled + c.partial + c.pending + c.undecided + c.reading
	if delta := used - c.accounted; delta != 0 {
		c.accounted = used
		c.options.Totals.memory.Add(int64(delta))
	}
}

// bufferLimit returns how many of limit bytes the connection may buffer now.
// The caller holds c.mu.
func (c *Conn) bufferLimit(limit int) int {
	switch {
	case !c.authorized:
		return min(limit, anonymousBuffer)
	case c.options.Totals.isScarce():
		return limit / scarceShare
	}
	return limit
}

// endIfExhausted ends the connection if all connections together buffer twice
// what they may, and this one more than its share. Messages that were asked for
// before memory became scarce can have this effect. The caller holds c.mu.
func (c *Conn) endIfExhausted() {
	if c.options.Totals.isExhausted() && c.accounted > c.options.OutBuffer {
		c.abortConn(memoryExhausted())
	}
}
