package embedded

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

const (
	idleTimeout = time.Minute      // with a client that sends nothing, or takes nothing
	maxArrival  = 15 * time.Minute // that a request may take to arrive
)

// Handler serves the account over HTTP.
func (a *Account) Handler() http.Handler {
	most := a.options.MaxRequests - a.options.MaxRequests/4
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		r.Body = readBody{r.Body, control, time.Now().Add(maxArrival)}
		answered, err := a.handleRequest(r, most)
		if err != nil { // closed
			answered = errorAnswer(err, r.Method == http.MethodHead)
		}
		if answered.status >= http.StatusBadRequest {
			drainBody(r)
		}
		for name, values := range answered.header {
			w.Header()[name] = values
		}
		to := writtenBody{w, control}
		to.extendDeadline()
		w.WriteHeader(answered.status)
		if answered.body == nil {
			return
		}
		defer func() { _ = answered.body.Close() }() // only read
		if _, err := io.Copy(to, answered.body); err != nil {
			panic(http.ErrAbortHandler) // a client that gets less than was said has to notice
		}
	})
}

// drainBody reads what is left of a body, if it is not too long: many clients look at
// an answer only when they have sent everything.
func drainBody(r *http.Request) {
	const most = 16 << 20
	if r.ContentLength <= most && r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, most) // if it fails, the client has gone
	}
}

// A readBody gives a client time again whenever it has sent something, but not for
// ever: it keeps others from their turn.
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
	_ = b.control.SetReadDeadline(deadline) // some writers have none
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // or it would end what the answer takes
	}
	return n, err
}

// A writtenBody gives a client time again whenever it has taken something.
type writtenBody struct {
	io.Writer
	control *http.ResponseController
}

func (b writtenBody) extendDeadline() {
	_ = b.control.SetWriteDeadline(time.Now().Add(idleTimeout)) // some writers have none
}

func (b writtenBody) Write(p []byte) (int, error) {
	b.extendDeadline()
	return b.Writer.Write(p)
}

// A Door is what may differ between two ways into the same account.
type Door struct {
	// TLS is for HTTPS. Default: plain HTTP.
	TLS *tls.Config

	// HTTP answers. Default: Account.Handler.
	HTTP http.Handler

	// AnyHost accepts every Host header; the handler HTTP checks them instead.
	// Default: on a loopback address only loopback names are accepted.
	AnyHost bool

	// MaxConnections bounds the connections at one time. Default: 1000, and half of the
	// file descriptors of the process at most. When there are as many, the one that has
	// been idle the longest is closed for a new one. If none is idle, the new one gets
	// 503.
	MaxConnections int
}

// wrongHost is the text of a rejection: the key of an emulator is no secret, so the
// Host header is what keeps web pages out.
const wrongHost = "this account serves this machine only, by the names localhost and 127.0.0.1"

// Serve serves clients that come to listener until ctx ends or the account is
// closed, and then closes it and all connections. On a loopback address it answers
// only by the names of this machine.
func (a *Account) Serve(ctx context.Context, listener net.Listener, d Door) error {
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
	err := httpserve.Serve(ctx, listener, httpserve.Options{
		Handler: d.HTTP, Logger: a.options.Logger, Server: "the account", TLS: d.TLS,
		MaxConnections: cmp.Or(d.MaxConnections, min(1000, connlimit.FileLimit()/2)),
	})
	cancel()
	closing.Wait()
	return err
}

// refuseOverLimit refuses what comes on connections over the limit of the listener, as
// an account that is too busy.
func refuseOverLimit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if connlimit.OverLimit(r.Context()) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			w.Header().Set("X-Ms-Error-Code", "ServerBusy")
			http.Error(w, "this account has as many connections as it may have", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}
