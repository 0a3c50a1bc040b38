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
	idleTimeout = time.Minute      // timeout for a client that neither sends nor reads
	maxArrival  = 15 * time.Minute // limit for the time in which a request arrives
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
				name = lower // as Azure sends the name; some clients compare the case
			}
			w.Header()[name] = values
		}
		if resp.header.Get("Content-Type") == "" {
			w.Header()["Content-Type"] = nil // prevents net/http from deriving it from the content
		}
		to := writtenBody{w, control}
		to.extendDeadline()
		w.WriteHeader(resp.status)
		if resp.body == nil {
			return
		}
		defer func() { _ = resp.body.Close() }() // read-only: no data can be lost
		if _, err := io.Copy(to, resp.body); err != nil {
			panic(http.ErrAbortHandler) // closes the connection, which tells the client that the body is incomplete
		}
	})
}

// drainBody reads the rest of a body, unless the body is too long. Many clients read a response only after
// they have sent the whole request.
func drainBody(r *http.Request) {
	const limit = 16 << 20
	if r.ContentLength <= limit && r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, limit) // an error means that the client has disconnected
	}
}

// A readBody extends the read deadline whenever the client sends data. The deadline is never later than
// until, because a running request occupies one of MaxRequests.
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
	_ = b.control.SetReadDeadline(deadline) // some writers do not support deadlines
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
	_ = b.control.SetWriteDeadline(time.Now().Add(idleTimeout)) // some writers do not support deadlines
}

func (b writtenBody) Write(p []byte) (int, error) {
	b.extendDeadline()
	return b.Writer.Write(p)
}

// ServeOptions are the settings in which two endpoints of one account may differ.
type ServeOptions struct {
	// TLS is the configuration for HTTPS. As on Azure, HTTP/2 is not supported. Default: plain HTTP.
	TLS *tls.Config

	// HTTP is the handler. Default: Account.Handler.
	HTTP http.Handler

	// AnyHost accepts every Host header, so the handler HTTP must check Host headers. Default: a
	// listener on a loopback address accepts only loopback names.
	AnyHost bool

	// MaxConnections bounds the number of connections. Default: 1000, but at most half of the file
	// descriptors of the process. At the limit, a new connection replaces the connection that has been
	// idle the longest. If no connection is idle, the new connection gets 503.
	MaxConnections int
}

// wrongHost is the error text for other Host headers. The key of an emulator is public, so only the check
// of the Host header prevents access by web pages.
const wrongHost = "this account accepts only requests to localhost and 127.0.0.1"

// Serve serves the clients of listener until ctx ends or the account is closed. Before it returns, it
// closes the listener and all connections. On a loopback address, it accepts only loopback Host headers,
// unless d.AnyHost is set.
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

// refuseOverLimit refuses requests on connections over the limit of the listener with ServerBusy.
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
