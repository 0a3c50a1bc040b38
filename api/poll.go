package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/domain/hub"
)

// A request that waits in its handler needs two goroutines, their stacks and the buffers of
// net/http, 50 KB in all. So a Peek that waits for data is parked: the hub takes its connection
// from the http.Server and stores it with the text of the request. When there may be data, the wait
// ends, or the server drains, the http.Server accepts the connection like a new one and reads the
// stored request again.
//
//	http.Server ─▶ Peek, no data ─▶ park ─▶ wait for data, the end, or the client
//	     ▲                                        │
//	     └──────── pollListener ◀── resume ◀──────┘
//
// For the client, the log and the metrics, this is one request with one response.

// errParked means that a request was parked by its handler and has no response yet.
var errParked = errors.New("the request waits as a poll")

// maxPollRequest is the maximum length of a request that is parked. A longer request waits in its
// handler.
const maxPollRequest = 4 * kilobyte // tokens have up to 2 KB

// polls contains the parked requests of a Server, and the channel on which they are resumed.
type polls struct {
	state   func(net.Conn, http.ConnState) // hook ConnState of the http.Server; may be nil
	resumed chan *resumedConn
	closed  chan struct{} // closed when the http.Server stops accepting resumed connections
	close   sync.Once

	parked sync.WaitGroup // counts parked polls, and resumed polls that no handler serves yet
	mu     sync.Mutex
	all    map[*poll]struct{} // parked polls that still wait
	drains bool               // whether the server drains, so that no further request is parked
}

// ParkPolls lets s park the requests of srv that wait for data. The caller must make srv serve the
// returned listener, in addition to its own listener. ParkPolls must be called after the handler
// and all hooks of srv were set, and before srv serves.
func (s *Server) ParkPolls(srv *http.Server) net.Listener {
	connContext, connState := srv.ConnContext, srv.ConnState
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if connContext != nil {
			ctx = connContext(ctx, c)
		}
		var known *pollConn
		if resumed, ok := c.(*resumedConn); ok {
			resumed.resumes = nil // releases the previous connection, which would otherwise remain in memory
			known = resumed.known
		} else {
			known = &pollConn{}
		}
		return context.WithValue(ctx, pollConnKey{}, known)
	}
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		if connState != nil && state != http.StateHijacked { // a parked connection still counts as a connection of the server
			connState(c, state)
		}
		if resumed, ok := c.(*resumedConn); ok && state == http.StateClosed {
			if p := resumed.known.takePoll(); p != nil { // the server closed the connection before a handler served it
				p.abort(http.ErrServerClosed)
			}
		}
	}
	handler := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		restoreTLS(r)
		handler.ServeHTTP(w, r)
	})
	s.polls.state = connState
	s.polls.resumed, s.polls.closed = make(chan *resumedConn), make(chan struct{})
	return (*pollListener)(&s.polls)
}

// WaitForPolls returns when no request is parked, or when ctx ends. It must be called after
// SetDraining.
func (s *Server) WaitForPolls(ctx context.Context) {
	none := make(chan struct{})
	go func() {
		s.polls.parked.Wait()
		close(none)
	}()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// A pollConn contains, in the context of a connection, the data that its polls need. Only the
// goroutine that serves the connection uses it.
type pollConn struct {
	poll *poll                // poll that the first request of the connection resumes
	tls  *tls.ConnectionState // TLS state of the connection, if it was parked; nil without TLS
}

type pollConnKey struct{}

// takePoll returns the poll that a request resumes, or nil if the request is new.
func takePoll(ctx context.Context) *poll {
	c, _ := ctx.Value(pollConnKey{}).(*pollConn)
	if c == nil {
		return nil
	}
	p := c.takePoll()
	if p != nil {
		p.server.polls.parked.Done() // from now on, the handler of the request delays the server's shutdown
	}
	return p
}

// restoreTLS sets the TLS state of r, because the http.Server does not recognize TLS on a
// connection that was parked.
func restoreTLS(r *http.Request) {
	if c, _ := r.Context().Value(pollConnKey{}).(*pollConn); c != nil && c.tls != nil {
		r.TLS = c.tls
	}
}

func (c *pollConn) takePoll() *poll {
	p := c.poll
	c.poll = nil
	return p
}

// A poll is a parked request.
type poll struct {
	server   *Server
	listener *hub.Listener
	conn     net.Conn             // connection, without the wrappers of earlier resumptions
	known    net.Conn             // connection that the hooks of the http.Server know
	tls      *tls.ConnectionState // TLS state of conn; nil without TLS
	request  []byte               // text of the request, followed by bytes that the client has sent after it
	hasMore  bool                 // whether request contains bytes that the client has sent after the request
	id       string
	actor    string
	route    string

	principal string // verified sender; "" if none exists
	start     time.Time
	span      trace.Span // span of the request; nil if none exists
	until     time.Time  // time at which the wait ends

	mu       sync.Mutex
	isParked bool
	hasNews  bool          // whether there may be data
	wake     chan struct{} // closed at the end of the wait; set by waitBlindly
	next     [1]byte       // buffer for the next byte from the client
}

// park takes the connection of r from the http.Server until there may be data, or until the time
// until. If it returns false, the request must wait in its handler.
func (s *Server) park(w http.ResponseWriter, r *http.Request, listener *hub.Listener, until time.Time, route string) bool {
	if _, ok := r.Context().Value(pollConnKey{}).(*pollConn); !ok || r.ProtoMajor != 1 || r.ContentLength != 0 {
		return false
	}
	request := requestText(r)
	if len(request) > maxPollRequest || !s.polls.addActive() {
		return false
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.polls.parked.Done()
		return false
	}
	rec := recordOf(r.Context())
	rec.isParked = true
	p := &poll{
		server: s, listener: listener, conn: conn, known: conn, tls: r.TLS, request: request, id: rec.id,
		actor: actorOf(r.Context()).String(), route: route, start: rec.start, span: rec.span, until: until,
		principal: rec.principal,
	}
	if resumed, ok := conn.(*resumedConn); ok {
		p.conn = resumed.Conn
	}
	if n := buffered.Reader.Buffered(); n > 0 {
		more, _ := buffered.Peek(n) // Peek does not fail, because these bytes are already buffered
		p.request, p.hasMore = append(p.request, more...), true
	}
	s.metrics.waiting.Inc()
	p.begin()
	go p.run() //nolint:contextcheck // it outlasts the context of the handler
	return true
}

// addActive counts a poll. It returns false if the server drains.
func (ps *polls) addActive() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.drains {
		return false
	}
	ps.parked.Add(1)
	return true
}

// addPoll registers a waiting poll. It returns false if the server drains.
func (ps *polls) addPoll(p *poll) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.drains {
		return false
	}
	if ps.all == nil {
		ps.all = make(map[*poll]struct{})
	}
	ps.all[p] = struct{}{}
	return true
}

func (ps *polls) removePoll(p *poll) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.all, p)
}

// drain resumes all polls.
func (ps *polls) drain() {
	ps.mu.Lock()
	ps.drains = true
	waiting := slices.Collect(maps.Keys(ps.all))
	ps.mu.Unlock()
	for _, p := range waiting {
		p.resume(false)
	}
}

// requestText returns the header of r as a client could have sent it.
func requestText(r *http.Request) []byte {
	var b bytes.Buffer
	b.WriteString(r.Method + " " + r.RequestURI + " " + r.Proto + "\r\nHost: " + r.Host + "\r\n")
	_ = r.Header.Write(&b) // writing to a buffer never fails
	if r.Close && r.Header.Get("Connection") == "" {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	return bytes.Clone(b.Bytes())
}

// begin arranges that the wait ends at its deadline, when there may be data, or when the server
// drains. It is separate from run to keep the stack of run small.
func (p *poll) begin() {
	_ = p.conn.SetReadDeadline(p.until)
	p.mu.Lock()
	p.isParked = true
	p.mu.Unlock()
	if !p.server.polls.addPoll(p) {
		p.resume(false)
		return
	}
	p.listener.Notify(p.server.draining, func() { p.resume(true) })
}

// run waits, and then returns the connection to the http.Server. Its stack remains at 2 KB while it
// waits.
func (p *poll) run() {
	n, err := 0, error(nil)
	if !p.hasMore {
		n, err = p.conn.Read(p.next[:])
	}
	p.finish(n, err)
}

// finish ends a poll that has read n bytes, which the client sent after its request.
func (p *poll) finish(n int, err error) {
	if p.request = append(p.request, p.next[:n]...); n > 0 || p.hasMore {
		p.waitBlindly()
		err = nil
	}
	p.end()
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		if err = p.returnConn(); err == nil {
			return
		}
	}
	p.closeConn()
	p.abort(err)
}

// closeConn closes a connection that does not return to the http.Server.
func (p *poll) closeConn() {
	_ = p.conn.Close()
	if state := p.server.polls.state; state != nil {
		state(p.known, http.StateClosed)
	}
}

// abort ends a poll whose connection is closed.
func (p *poll) abort(err error) {
	p.listener.Close()
	p.server.reportPoll(p, err)
	p.server.polls.parked.Done()
}

// waitBlindly waits without reading from the connection, because the http.Server must read the
// bytes that the client has already sent.
func (p *poll) waitBlindly() {
	p.mu.Lock()
	isParked, wake := p.isParked, make(chan struct{})
	p.wake = wake
	p.mu.Unlock()
	if !isParked {
		return
	}
	timer := time.NewTimer(time.Until(p.until))
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	}
}

// end removes the poll from everything that could resume it. Afterwards, no other goroutine uses
// the connection.
func (p *poll) end() {
	p.server.polls.removePoll(p)
	p.listener.StopNotify()
	p.mu.Lock()
	p.isParked = false
	p.mu.Unlock()
	p.server.metrics.waiting.Dec()
}

// returnConn returns the connection to the http.Server.
func (p *poll) returnConn() error {
	_ = p.conn.SetReadDeadline(time.Time{}) // if this fails, the connection is broken and the next read fails
	select {
	case p.server.polls.resumed <- &resumedConn{Conn: p.conn, text: p.request, known: &pollConn{p, p.tls}, resumes: p.known}:
		return nil
	case <-p.server.polls.closed:
		return http.ErrServerClosed
	}
}

// resume ends the wait.
func (p *poll) resume(hasNews bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isParked {
		return
	}
	p.isParked, p.hasNews = false, hasNews
	_ = p.conn.SetReadDeadline(time.Unix(1, 0))
	if p.wake != nil {
		close(p.wake)
	}
}

// A resumedConn is a connection whose next request has already been read.
type resumedConn struct {
	net.Conn
	text    []byte // bytes that Read returns before it reads from the connection
	known   *pollConn
	resumes net.Conn // connection that the hooks of the http.Server know; nil after ConnContext
}

// Resumes returns the connection that the hooks of the http.Server know, so that a hook that counts
// connections counts a resumed connection only once. After ConnContext it returns nil.
func (c *resumedConn) Resumes() net.Conn { return c.resumes }

// NetConn returns the underlying connection, like [tls.Conn.NetConn].
func (c *resumedConn) NetConn() net.Conn { return c.Conn }

func (c *resumedConn) Read(p []byte) (int, error) {
	if len(c.text) > 0 {
		n := copy(p, c.text)
		c.text = c.text[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// A pollListener accepts the connections of parked requests that are resumed.
type pollListener polls

// Accept implements net.Listener.
func (l *pollListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.resumed:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pollListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *pollListener) Addr() net.Addr { return pollAddr{} }

type pollAddr struct{}

func (pollAddr) Network() string { return "polls" }
func (pollAddr) String() string  { return "polls" }
