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
	idleTimeout = time.Minute      // timeout for a client that does not send or read
	maxArrival  = 15 * time.Minute // limit for the arrival of a request
)

// Handler returns a handler that serves the account over HTTP.
func (a *Account) Handler() http.Handler {
	limit := a.options.MaxRequests - a.options.MaxRequests/4
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		r = r.WithContext(withReceivedNames(r.Context(), r))
		r.Body = readBody{r.Body, control, time.Now().Add(maxArrival)}
		answered, err := a.handleRequest(r, limit)
		if err != nil { // closed
			answered = errorAnswer(err, r.Method == http.MethodHead)
		}
		if answered.status >= http.StatusBadRequest {
			drainBody(r)
		}
		for name, values := range answered.header {
			if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") && !strings.HasPrefix(lower, metadataPrefix) {
				name = lower // as Azure sends it; some clients compare the case
			}
			w.Header()[name] = values
		}
		if answered.header.Get("Content-Type") == "" {
			w.Header()["Content-Type"] = nil // net/http must not guess it from the content
		}
		to := writtenBody{w, control}
		to.extendDeadline()
		w.WriteHeader(answered.status)
		if answered.body == nil {
			return
		}
		defer func() { _ = answered.body.Close() }() // only read
		if _, err := io.Copy(to, answered.body); err != nil {
			panic(http.ErrAbortHandler) // the client must notice that the body is incomplete
		}
	})
}

// drainBody reads the rest of a body, unless it is too long: many clients read an answer only
// after they have sent the whole request.
func drainBody(r *http.Request) {
	const limit = 16 << 20
	if r.ContentLength <= limit && r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, limit) // if it fails, the client has disconnected
	}
}

// A readBody extends the read deadline whenever the client has sent data, up to a limit,
// because a running request occupies one of MaxRequests.
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
	_ = b.control.SetReadDeadline(deadline) // some writers do not support it
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // otherwise it would end the answer, too
	}
	return n, err
}

// A writtenBody extends the write deadline whenever the client has read data.
type writtenBody struct {
	io.Writer
	control *http.ResponseController
}

func (b writtenBody) extendDeadline() {
	_ = b.control.SetWriteDeadline(time.Now().Add(idleTimeout)) // some writers do not support it
}

func (b writtenBody) Write(p []byte) (int, error) {
	b.extendDeadline()
	return b.Writer.Write(p)
}

// ServeOptions are the settings in which two endpoints of one account may differ.
type ServeOptions struct {
	// TLS is for HTTPS. Like Azure, the account does not speak HTTP/2. Default: plain HTTP.
	TLS *tls.Config

	// HTTP is the handler. Default: Account.Handler.
	HTTP http.Handler

	// AnyHost accepts every Host header; the handler HTTP checks them instead.
	// Default: on a loopback address only loopback names are accepted.
	AnyHost bool

	// MaxConnections bounds the number of connections. Default: 1000, but at most half of the
	// file descriptors of the process. At the limit, a new connection replaces the one that has
	// been idle the longest. If none is idle, the new one gets 503.
	MaxConnections int
}

// wrongHost is the text of a rejection. The key of an emulator is public, so only the check of
// the Host header keeps web pages out.
const wrongHost = "this account accepts only requests to localhost and 127.0.0.1"

// Serve serves the clients of listener until ctx ends or the account is closed. Then it closes
// the listener and all connections. On a loopback address it accepts only loopback Host
// headers.
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

// refuseOverLimit refuses requests on connections over the limit of the listener, as a busy
// account does.
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
