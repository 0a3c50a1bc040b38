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

// A request that waits in its handler holds two goroutines, their stacks and the buffers of
// net/http, 50 KB in all. So a Peek that waits for data is parked: the hub takes its connection
// from the http.Server and stores it with the text of the request. When there may be data, the wait
// ends, or the server drains, the http.Server accepts the connection like a new one and reads the
// stored request again.
//
//	http.Server ─▶ Peek, no data ─▶ park ─▶ wait for data, the end, or the client
//	     ▲                                        │
//	     └──────── pollListener ◀── resume ◀──────┘
//
// To the client, to the log and to the metrics, this is one request with one response.

// errParked is the error of a handler whose request was parked and has no response yet.
var errParked = errors.New("the request waits as a poll")

// maxPollRequest is the maximum length of a request that is parked. A longer request waits in its
// handler.
const maxPollRequest = 4 * kilobyte // tokens have up to 2 KB

// polls are the parked requests of a Server, and the channel on which they are resumed.
type polls struct {
	state   func(net.Conn, http.ConnState) // hook ConnState of the http.Server; may be nil
	resumed chan *resumedConn
	closed  chan struct{} // closed when the http.Server stops accepting resumed connections
	close   sync.Once

	parked sync.WaitGroup // counts parked polls, and resumed polls that no handler serves yet
	mu     sync.Mutex
	all    map[*poll]struct{} // polls that wait
	drains bool               // the server drains, so no request is parked
}

// ParkPolls lets s park the requests of srv that wait for data. The caller makes srv serve the
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
			resumed.resumes = nil // a reference would keep all previous connections in memory
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

// A pollConn is the state of polls in the context of a connection. Only the goroutine that serves
// the connection uses it.
type pollConn struct {
	poll *poll                // poll that the first request of the connection resumes
	tls  *tls.ConnectionState // TLS state of a connection that was parked; nil without TLS
}

type pollConnKey struct{}

// takePoll returns the poll that a request resumes, or nil for a new request.
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
	conn     net.Conn             // connection without the wrapper of an earlier resumption
	known    net.Conn             // the connection that the hooks of the http.Server know
	tls      *tls.ConnectionState // TLS state of conn; nil: none
	request  []byte               // text of the request, and bytes that the client has sent after the request
	hasMore  bool                 // the client has sent bytes after the request
	id       string
	actor    string
	route    string

	principal string // verified sender; "": none
	start     time.Time
	span      trace.Span // span of the request; nil: none
	until     time.Time  // end of the wait

	mu       sync.Mutex
	isParked bool
	hasNews  bool          // there may be data
	wake     chan struct{} // closed at the end of the wait; set by waitBlindly
	next     [1]byte       // buffer for the next byte from the client
}

// park takes the connection of r from the http.Server until there may be data, at most until the
// time until. If it returns false, the request must wait in its handler.
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
		more, _ := buffered.Peek(n) // does not fail, because these bytes are buffered
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

// addPoll registers a poll that waits. It returns false if the server drains.
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

// requestText returns the header of r in a form in which a client could have sent it.
func requestText(r *http.Request) []byte {
	var b bytes.Buffer
	b.WriteString(r.Method + " " + r.RequestURI + " " + r.Proto + "\r\nHost: " + r.Host + "\r\n")
	_ = r.Header.Write(&b) // writes to a buffer do not fail
	if r.Close && r.Header.Get("Connection") == "" {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	return bytes.Clone(b.Bytes())
}

// begin arranges that the wait ends at its deadline, when there may be data, or when the server
// drains. It is separate from run, so that the stack of run stays small.
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

// run waits, and then returns the connection to the http.Server. Its stack stays at 2 KB while it
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
// bytes that the client has sent.
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

// end detaches the poll. After this call, no other goroutine uses the connection.
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
	_ = p.conn.SetReadDeadline(time.Time{}) // a broken connection fails at the next read
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
	text    []byte // bytes that are read first
	known   *pollConn
	resumes net.Conn // connection that the hooks of the http.Server know; nil after ConnContext
}

// Resumes returns the connection that the hooks of the http.Server know, so that a hook that counts
// connections can count a resumed connection once. After ConnContext it returns nil.
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

// A pollListener accepts the connections of requests that are resumed.
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
