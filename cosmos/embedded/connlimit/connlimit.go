// Package connlimit bounds the connections of an http.Server, so that idle clients
// cannot use up the file descriptors of the process.
//
// A server at its limit still accepts connections. To make room it closes the connection that has
// been idle the longest, or a connection that has not sent a request in time. If no such connection
// exists, a few new connections may exceed the limit: [OverLimit] reports them to the handler, which
// refuses all requests except health probes.
//
//	accept ─▶ under the limit? ─▶ serve
//	              │ no
//	              ▼
//	          close an idle one ─▶ serve
//	              │ no idle one
//	              ▼
//	          over the limit: probes only; the oldest such connection makes room for the next
package connlimit

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Options configure a Limiter.
type Options struct {
	Limit      int // maximum number of connections; required
	PerAddress int // maximum number of connections from one address, except loopback addresses; default: Limit

	Reserve int              // maximum number of connections above the limit; default: 16
	Clock   func() time.Time // default time.Now
}

// headerTime is how long a new connection may take to send its first request while the server is at its limit.
const headerTime = 500 * time.Millisecond

// A Limiter counts the connections of one http.Server. It is safe for concurrent use.
type Limiter struct {
	opts Options

	mu        sync.Mutex
	open      map[net.Conn]*conn
	addresses map[netip.Addr]*address
	fresh     list.List // *conn without a first request, oldest first
	idle      list.List // *conn between two requests, longest idle first
	over      list.List // *conn above the limit, oldest first
	stats     Stats
}

// Stats are counts since the Limiter was created.
type Stats struct {
	Open   int   // connections now
	Closed int64 // number of connections that the limiter closed to make room
	Over   int64 // number of connections that were above the limit
}

// An address contains the connections of one client address, in the order of the limiter's lists.
type address struct {
	open        int
	fresh, idle list.List
}

type conn struct {
	net.Conn
	address *address
	addr    netip.Addr
	since   time.Time // time of the last state change
	over    bool

	in, own, overIn *list.Element
	lists           [2]*list.List // the two lists in which the connection currently is
}

// New returns a Limiter.
func New(opts Options) *Limiter {
	if opts.PerAddress <= 0 {
		opts.PerAddress = opts.Limit
	}
	if opts.Reserve <= 0 {
		opts.Reserve = 16
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	return &Limiter{opts: opts, open: make(map[net.Conn]*conn), addresses: make(map[netip.Addr]*address)}
}

// A ResumedConn is a hijacked connection that a server serves again. Its owner must not report http.StateHijacked to
// the hook of Attach, so that the limiter continues to count the connection. It is served even at the limit, because it
// is already counted.
type ResumedConn interface {
	net.Conn

	// Resumes returns the connection that was hijacked. The ResumedConn replaces it in the counts.
	Resumes() net.Conn
}

// Attach makes l count the connections of srv. It must be called before srv serves. Hooks that srv already has are
// still called.
func (l *Limiter) Attach(srv *http.Server) {
	inner, state := srv.ConnContext, srv.ConnState
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if inner != nil {
			ctx = inner(ctx, c)
		}
		return context.WithValue(ctx, connKey{}, l.addConn(c))
	}
	srv.ConnState = func(c net.Conn, s http.ConnState) {
		l.setState(c, s)
		if state != nil {
			state(c, s)
		}
	}
}

type connKey struct{}

// OverLimit reports whether a request came on a connection above the server's limit. The response should close the
// connection.
func OverLimit(ctx context.Context) bool {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c != nil && c.over
}

// Stats returns the current counts.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Open = len(l.open)
	return l.stats
}

// addConn registers a new connection and makes room for it. A resumed connection is already registered.
func (l *Limiter) addConn(nc net.Conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.resumeConn(nc); c != nil {
		return c
	}
	c := &conn{Conn: nc, addr: clientAddr(nc), since: l.opts.Clock()}
	c.address = l.addresses[c.addr]
	if c.address == nil {
		c.address = &address{}
		l.addresses[c.addr] = c.address
	}
	if !c.addr.IsLoopback() && c.address.open >= l.opts.PerAddress {
		c.over = !l.closeOldest(&c.address.idle, 0) && !l.closeOldest(&c.address.fresh, headerTime)
	}
	if !c.over && l.countInUse() >= l.opts.Limit {
		c.over = !l.closeOldest(&l.idle, 0) && !l.closeOldest(&l.fresh, headerTime)
	}
	l.open[nc] = c
	c.address.open++
	if c.over {
		l.stats.Over++
		if l.over.Len() >= l.opts.Reserve {
			l.closeConn(l.over.Front().Value.(*conn))
		}
		c.overIn = l.over.PushBack(c)
		return c
	}
	l.enterLists(c, &l.fresh, &c.address.fresh)
	return c
}

// resumeConn replaces the hijacked connection that nc resumes with nc, and returns its entry. It returns nil if nc
// resumes none. The entry is in the active state, because the request of nc has already been read.
func (l *Limiter) resumeConn(nc net.Conn) *conn {
	resumed, ok := nc.(ResumedConn)
	if !ok {
		return nil
	}
	known := resumed.Resumes()
	c := l.open[known]
	if c == nil {
		return nil
	}
	delete(l.open, known)
	c.Conn = nc
	l.open[nc] = c
	return c
}

// countInUse returns the number of connections below the limit.
func (l *Limiter) countInUse() int { return len(l.open) - l.over.Len() }

// setState records that a connection has changed its state.
func (l *Limiter) setState(nc net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.open[nc]
	if c == nil {
		return // the limiter has closed the connection
	}
	switch state {
	case http.StateNew:
	case http.StateActive:
		c.leaveLists()
	case http.StateIdle:
		c.leaveLists()
		if c.over { // an HTTP/2 connection is idle even before its first request; if it is above the limit, the first response closes it
			return
		}
		c.since = l.opts.Clock()
		l.enterLists(c, &l.idle, &c.address.idle)
	case http.StateHijacked, http.StateClosed:
		l.removeConn(c)
	}
}

// closeOldest closes the first connection of a list if it has been there for at least age.
func (l *Limiter) closeOldest(conns *list.List, age time.Duration) bool {
	first := conns.Front()
	if first == nil {
		return false
	}
	c := first.Value.(*conn)
	if l.opts.Clock().Sub(c.since) < age {
		return false
	}
	l.closeConn(c)
	return true
}

// closeConn closes c and frees its file descriptor and its entry.
func (l *Limiter) closeConn(c *conn) {
	l.stats.Closed++
	l.removeConn(c)
	_ = unwrapTLS(c.Conn).Close() // this makes the next read of the server fail
}

// unwrapTLS returns the network connection below a TLS connection. Closing a TLS connection writes to it; if the client
// does not read, that would block the limiter for seconds.
func unwrapTLS(c net.Conn) net.Conn {
	for {
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = outer.NetConn()
	}
}

func (l *Limiter) removeConn(c *conn) {
	c.leaveLists()
	if c.overIn != nil {
		l.over.Remove(c.overIn)
		c.overIn = nil
	}
	delete(l.open, c.Conn)
	if c.address.open--; c.address.open == 0 {
		delete(l.addresses, c.addr)
	}
}

// enterLists appends c to two lists.
func (l *Limiter) enterLists(c *conn, all, own *list.List) {
	c.lists = [2]*list.List{all, own}
	c.in, c.own = all.PushBack(c), own.PushBack(c)
}

// leaveLists removes c from the two lists.
func (c *conn) leaveLists() {
	if c.in != nil {
		c.lists[0].Remove(c.in)
		c.lists[1].Remove(c.own)
		c.in, c.own = nil, nil
	}
}

// clientAddr returns the address by which clients are distinguished. For IPv6 it is the /64 network.
func clientAddr(c net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	addr := at.Addr().Unmap().WithZone("")
	if prefix, err := addr.Prefix(64); err == nil && addr.Is6() && !addr.IsLoopback() {
		return prefix.Addr()
	}
	return addr
}
