package embedded

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Metadata keeps the case of its names, which net/http does not: it changes the names of all
// headers before a handler sees them. So the connections of Serve keep the head of the current
// request, as it arrived, for withReceivedNames.

type contextKey int

const (
	keySentNames contextKey = iota
	keyHead
)

// withSentNames returns a context with the names of a request's headers as the client sent
// them.
func withSentNames(ctx context.Context, names []string) context.Context {
	var sent map[string]string
	for _, name := range names {
		lower := strings.ToLower(name)
		if !strings.HasPrefix(lower, metadataPrefix) {
			continue
		}
		if sent == nil {
			sent = map[string]string{}
		}
		sent[lower] = name
	}
	return context.WithValue(ctx, keySentNames, sent)
}

// sentNames returns the names of metadata headers as the client sent them, by the same in lower
// case.
func sentNames(ctx context.Context) map[string]string {
	sent, _ := ctx.Value(keySentNames).(map[string]string)
	return sent
}

// withReceivedNames returns the context of r with the names that arrived on its connection. They
// are unknown if the connection is not one of Serve, or if the client sends several requests
// without waiting for their answers.
func withReceivedNames(r *http.Request) context.Context {
	c, ok := r.Context().Value(keyHead).(*headConn)
	if !ok {
		return r.Context()
	}
	return withSentNames(r.Context(), c.headerNames(r.Method+" "+r.RequestURI+" "))
}

// withHead returns a context with the connection of headListener.
func withHead(ctx context.Context, c net.Conn) context.Context {
	switch c := c.(type) {
	case *headConn:
		return context.WithValue(ctx, keyHead, c)
	case *tlsHeadConn:
		return context.WithValue(ctx, keyHead, &c.headConn)
	}
	return ctx
}

// A headListener accepts connections that keep the head of the current request.
type headListener struct {
	net.Listener
	tls *tls.Config // or nil
}

// Accept implements [net.Listener].
func (l headListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.tls == nil {
		return &headConn{Conn: c}, nil
	}
	config := l.tls.Clone()
	config.NextProtos = []string{"http/1.1"} // http.Server speaks HTTP/2 only on its own connections
	return &tlsHeadConn{headConn{Conn: tls.Server(c, config)}}, nil
}

// A headConn keeps the head of the request that it received since the last answer.
type headConn struct {
	net.Conn

	mu       sync.Mutex
	head     []byte
	complete bool
}

const maxHead = 80 << 10 // more than the server accepts

// Read implements [net.Conn].
func (c *headConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.complete {
		from := max(0, len(c.head)-len(endOfHead)+1)
		c.head = append(c.head, p[:n]...)
		end := bytes.Index(c.head[from:], []byte(endOfHead))
		if c.complete = end >= 0 || len(c.head) > maxHead; c.complete && end >= 0 {
			c.head = c.head[:from+end]
		}
	}
	return n, err
}

const endOfHead = "\r\n\r\n"

// Write implements [net.Conn]. What arrives after an answer is the next request.
func (c *headConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.head, c.complete = nil, false
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// headerNames returns the names in the head, or nil if it does not begin with requestLine.
func (c *headConn) headerNames(requestLine string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, rest, _ := strings.Cut(string(c.head), "\r\n")
	c.head = nil // it is complete, and not needed any longer
	if !strings.HasPrefix(first, requestLine) {
		return nil
	}
	var names []string
	for line := range strings.SplitSeq(rest, "\r\n") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

// A tlsHeadConn is a headConn with TLS.
type tlsHeadConn struct{ headConn }

// ConnectionState performs the handshake, and returns its result. The server calls it once, before
// it reads. If the handshake fails, so does reading.
func (c *tlsHeadConn) ConnectionState() tls.ConnectionState {
	secure := c.Conn.(*tls.Conn)
	_ = secure.SetDeadline(time.Now().Add(idleTimeout))
	_ = secure.Handshake()
	_ = secure.SetDeadline(time.Time{})
	return secure.ConnectionState()
}
