package embedded

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Metadata names are case-sensitive, but net/http changes the case of all header names. Therefore the connections of
// Serve store the unchanged head of the current request, from which withReceivedNames reads the names.

type contextKey int

const (
	keySentNames contextKey = iota
	keyHead
)

// withSentNames stores the names of a request's metadata headers in the context. names are all header names, in the
// case in which the client sent them.
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

// sentNames returns the metadata header names as the client sent them, by their lower-case form.
func sentNames(ctx context.Context) map[string]string {
	sent, _ := ctx.Value(keySentNames).(map[string]string)
	return sent
}

// withReceivedNames stores the header names of r as they arrived on the connection. They are unknown if the connection
// is not from Serve, or if the client pipelines requests.
func withReceivedNames(ctx context.Context, r *http.Request) context.Context {
	c, ok := ctx.Value(keyHead).(*headConn)
	if !ok {
		return ctx
	}
	return withSentNames(ctx, c.headerNames(r.Method+" "+r.RequestURI+" "))
}

// withHead stores c in the context if c is a connection from a headListener.
func withHead(ctx context.Context, c net.Conn) context.Context {
	switch c := c.(type) {
	case *headConn:
		return context.WithValue(ctx, keyHead, c)
	case *tlsHeadConn:
		return context.WithValue(ctx, keyHead, &c.headConn)
	}
	return ctx
}

// A headListener accepts connections that store the head of the current request.
type headListener struct {
	net.Listener
	tls    *tls.Config // nil disables TLS
	logger *slog.Logger
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
	config.NextProtos = []string{"http/1.1"} // http.Server supports HTTP/2 only on TLS connections that it creates
	return &tlsHeadConn{headConn{Conn: tls.Server(c, config)}, l.logger}, nil
}

// A headConn stores the head of the request that arrived after the last response.
type headConn struct {
	net.Conn

	mu       sync.Mutex
	head     []byte
	complete bool
}

const maxHead = 80 << 10 // maxHead is greater than the largest head that the server accepts

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

// Write implements [net.Conn]. It discards the stored head, because later data belongs to the next request.
func (c *headConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.head, c.complete = nil, false
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// headerNames returns the header names in the stored head. It returns nil if the head does not begin with requestLine.
func (c *headConn) headerNames(requestLine string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, rest, _ := strings.Cut(string(c.head), "\r\n")
	c.head = nil // a head is read only once
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

// A tlsHeadConn is a headConn whose client uses TLS.
type tlsHeadConn struct {
	headConn
	logger *slog.Logger
}

// ConnectionState performs the TLS handshake and returns its result. The server calls it once, before reading. If the
// handshake fails, reading fails, too.
func (c *tlsHeadConn) ConnectionState() tls.ConnectionState {
	secure := c.Conn.(*tls.Conn)
	limit, cancel := context.WithTimeout(context.Background(), idleTimeout)
	defer cancel()
	if err := secure.HandshakeContext(limit); err != nil {
		c.logger.Warn("a client of blob storage cannot connect: the TLS handshake failed", "client", c.RemoteAddr(), "error", err)
		refusePlainHTTP(err)
	}
	return secure.ConnectionState()
}

// refusePlainHTTP responds with 400 if err says that the client sent plain HTTP instead of TLS. http.Server does the
// same.
func refusePlainHTTP(err error) {
	record, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || record.Conn == nil {
		return
	}
	switch string(record.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET":
		_, _ = io.WriteString(record.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nthis account expects HTTPS\n") // an error only means that the client has disconnected
	}
}
