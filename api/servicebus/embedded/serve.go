package embedded

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/accept"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// ServeOptions are the options of one call to Serve. A namespace may be served on several ports.
type ServeOptions struct {
	// TLS enables TLS. Unless TLSOnly is set, clients may also connect without TLS; the first byte of a connection
	// tells whether the client uses TLS.
	TLS *tls.Config

	// TLSOnly closes connections without TLS.
	TLSOnly bool

	// HTTP handles HTTP requests. Default: Namespace.Handler.
	HTTP http.Handler

	// AnyHost accepts every Host header, so HTTP must check the header itself. By default, a loopback address accepts
	// only loopback host names.
	AnyHost bool
}

// wrongHost is the response to a request with a wrong Host header. The key of an emulator is public, so only the Host
// check keeps web pages from accessing the namespace.
const wrongHost = "this namespace accepts only requests to localhost and 127.0.0.1"

// Serve serves the clients of listener until ctx ends. Then it closes the listener and its
// connections. On a loopback address it accepts only loopback Host headers over HTTP.
func (n *Namespace) Serve(ctx context.Context, listener net.Listener, d ServeOptions) error {
	if d.HTTP == nil {
		d.HTTP = n.Handler()
	}
	if !d.AnyHost {
		d.HTTP = loopback.CheckHost(listener.Addr(), d.HTTP, wrongHost)
	}
	listener = accept.Retry(listener, accept.Options{Logger: n.options.Logger, Server: "the bus", Random: n.options.Random})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(n.ctx, cancel) //nolint:contextcheck // ends ctx with the namespace
	defer stop()
	s := &serveCall{namespace: n, options: d, ctx: ctx, web: newConnQueue(listener.Addr())}
	if s.options.TLS != nil {
		s.options.TLS = s.options.TLS.Clone()
		s.options.TLS.NextProtos = []string{"http/1.1"}
	}
	web := n.httpServer(ctx, d.HTTP, &s.running)
	s.running.Go(func() { _ = web.Serve(s.web) }) // web.Serve returns after Close
	closing := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer closing()
	err := s.acceptLoop(listener)
	cancel()
	s.closeAll()
	closeErr := web.Close()
	s.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return errors.Join(err, closeErr)
}

// serveCall is the state of one call to Serve.
type serveCall struct {
	namespace *Namespace
	options   ServeOptions
	ctx       context.Context //nolint:containedctx // of the call
	web       *connQueue
	running   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // conns contains the connections whose protocol is not yet known
}

// admitConn serves one connection, or closes it if all slots are in use.
func (s *serveCall) admitConn(nc net.Conn) {
	p := s.namespace.beginNetwork(func() { _ = nc.Close() })
	if p == nil {
		_ = nc.Close()
		return
	}
	s.running.Go(func() { s.serveConn(&slotConn{Conn: nc, place: p}) })
}

// A slotConn releases its slot when it is closed.
type slotConn struct {
	net.Conn
	place *connectionSlot
}

func (c *slotConn) Close() error {
	err := c.Conn.Close()
	c.place.endConnection()
	return err
}

// serveConn detects the protocol of a connection, serves it, and closes it.
func (s *serveCall) serveConn(nc *slotConn) {
	if !s.watchConn(nc) {
		return
	}
	deadline := time.Now().Add(s.namespace.options.TokenTimeout)
	_ = nc.SetReadDeadline(deadline)
	c := &peekedConn{Conn: nc, in: bufio.NewReader(nc), place: nc.place}
	first, err := c.in.Peek(1)
	if err == nil && first[0] == tlsHandshake && s.options.TLS != nil {
		_ = nc.SetWriteDeadline(deadline)
		secure := tls.Server(c, s.options.TLS)
		c = &peekedConn{Conn: secure, in: bufio.NewReader(secure), place: nc.place}
		first, err = c.in.Peek(1)
		_ = nc.SetWriteDeadline(time.Time{})
	} else if s.options.TLSOnly {
		err = errors.Join(err, errors.New("without TLS"))
	}
	s.forgetConn(nc)
	switch {
	case err != nil:
		_ = nc.Close()
	case first[0] == 'A':
		_ = c.SetReadDeadline(time.Time{})
		s.namespace.serveAMQP(s.ctx, c, max(time.Until(deadline), 1), nc.place.recordAuthorized)
	default:
		_ = c.SetReadDeadline(time.Time{})
		s.web.putConn(c)
	}
}

// tlsHandshake is the first byte of a TLS connection. An AMQP connection begins with A, and an HTTP
// request with the first letter of its method.
const tlsHandshake = 0x16

func (s *serveCall) watchConn(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		_ = nc.Close()
		return false
	}
	if s.conns == nil {
		s.conns = map[net.Conn]struct{}{}
	}
	s.conns[nc] = struct{}{}
	return true
}

func (s *serveCall) forgetConn(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, nc)
}

func (s *serveCall) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for nc := range s.conns {
		_ = nc.Close()
	}
}

// peekedConn is a connection whose first bytes have already been read. Read returns them again.
type peekedConn struct {
	net.Conn
	in    *bufio.Reader
	place *connectionSlot
}

func (p *peekedConn) Read(b []byte) (int, error) { return p.in.Read(b) }

// connQueue is a listener that returns the connections passed to putConn.
type connQueue struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newConnQueue(addr net.Addr) *connQueue {
	return &connQueue{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

func (q *connQueue) putConn(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.done:
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (q *connQueue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *connQueue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

// Addr implements net.Listener.
func (q *connQueue) Addr() net.Addr { return q.addr }
