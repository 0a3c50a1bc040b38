package embedded

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

const (
	idleTimeout = time.Minute      // timeout for a client that neither sends nor receives
	maxArrival  = 15 * time.Minute // maximum time in which a request must arrive completely
)

// Handler returns a handler that serves the account over HTTP.
func (a *Account) Handler() http.Handler {
	limit := a.options.MaxRequests - a.options.MaxRequests/4
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		r = r.WithContext(withReceivedNames(r.Context(), r))
		r.Body = readBody{r.Body, control, time.Now().Add(maxArrival)}
		resp, err := a.handleRequest(r, limit)
		if err != nil { // the account is closed
			resp = newErrorResponse(err, r.Method == http.MethodHead)
		}
		if resp.status >= http.StatusBadRequest {
			drainBody(r)
		}
		for name, values := range resp.header {
			if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") && !strings.HasPrefix(lower, metadataPrefix) {
				name = lower // lower case, as on Azure, because some clients compare the case
			}
			w.Header()[name] = values
		}
		if resp.header.Get("Content-Type") == "" {
			w.Header()["Content-Type"] = nil // nil prevents net/http from guessing the type from the content
		}
		to := writtenBody{w, control}
		to.extendDeadline()
		w.WriteHeader(resp.status)
		if resp.body == nil {
			return
		}
		defer func() { _ = resp.body.Close() }() // no data can be lost, because the file is only read
		if _, err := io.Copy(to, resp.body); err != nil {
			panic(http.ErrAbortHandler) // ErrAbortHandler closes the connection, so the client knows that the body is incomplete
		}
	})
}

// drainBody reads the rest of a request body, unless it is too long, because many clients send the whole request before
// they read the response.
func drainBody(r *http.Request) {
	const limit = 16 << 20
	if r.ContentLength <= limit && r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, limit) // an error only means that the client has disconnected
	}
}

// A readBody extends the read deadline whenever data arrives, but never beyond until, because a running request counts
// toward MaxRequests.
type readBody struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time
}

func (b readBody) Read(p []byte) (int, error) {
	deadline := time.Now().Add(idleTimeout)
	if deadline.After(b.until) {
		deadline = b.until
	}
	_ = b.control.SetReadDeadline(deadline) // an error only means that this writer has no deadlines
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // the deadline would also interrupt the response
	}
	return n, err
}

// A writtenBody extends the write deadline before each write.
type writtenBody struct {
	io.Writer
	control *http.ResponseController
}

func (b writtenBody) extendDeadline() {
	_ = b.control.SetWriteDeadline(time.Now().Add(idleTimeout)) // an error only means that this writer has no deadlines
}

func (b writtenBody) Write(p []byte) (int, error) {
	b.extendDeadline()
	return b.Writer.Write(p)
}

// ServeOptions are the options of one call to Serve. An account may be served on several ports.
type ServeOptions struct {
	// TLS is the TLS configuration. As on Azure, there is no HTTP/2. By default, Serve uses plain HTTP.
	TLS *tls.Config

	// HTTP is the handler. Default: Account.Handler.
	HTTP http.Handler

	// AnyHost disables the check of the Host header; the handler must then check the header itself. By default, a
	// listener on a loopback address accepts only loopback host names.
	AnyHost bool

	// MaxConnections limits the connections. At the limit, a new connection replaces the one that has been idle
	// longest. If none is idle, the new connection gets 503. Default: 1000, but at most half of the file descriptors of
	// the process.
	MaxConnections int
}

// wrongHost is the response to a request with a wrong Host header. The key of an emulator is public, so only the Host
// check keeps web pages from accessing the account.
const wrongHost = "this account accepts only requests to localhost and 127.0.0.1"

// Serve serves the clients of listener until ctx ends or the account is closed. Then it closes the listener and all
// connections, and returns. On a loopback address it accepts only loopback Host headers, unless d.AnyHost is set.
func (a *Account) Serve(ctx context.Context, listener net.Listener, d ServeOptions) error {
	if d.HTTP == nil {
		d.HTTP = a.Handler()
	}
	d.HTTP = refuseOverLimit(d.HTTP)
	if !d.AnyHost {
		d.HTTP = loopback.CheckHost(listener.Addr(), d.HTTP, wrongHost)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var closing sync.WaitGroup
	closing.Go(func() {
		select {
		case <-ctx.Done():
		case <-a.closing:
			cancel()
		}
	})
	err := httpserve.Serve(ctx, headListener{listener, d.TLS, a.options.Logger}, httpserve.Options{
		Handler: d.HTTP, Logger: a.options.Logger, Server: "the account", ConnContext: withHead,
		MaxConnections: cmp.Or(d.MaxConnections, min(1000, connlimit.FileLimit()/2)),
	})
	cancel()
	closing.Wait()
	return err
}

// refuseOverLimit responds with ServerBusy to requests on connections above the limit.
func refuseOverLimit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if connlimit.OverLimit(r.Context()) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			w.Header().Set("X-Ms-Error-Code", "ServerBusy")
			http.Error(w, "this account has reached its limit of connections", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}
