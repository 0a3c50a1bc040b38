// Package httpserve runs the HTTP server of an embedded engine: with limits against clients
// that hold connections, and with a shutdown that leaves no goroutine behind.
//
//	ctx ends ─▶ Grace: requests complete ─▶ connections close ─▶ Serve returns
//	                │ after CancelAfter
//	                ▼
//	            the contexts of all running requests end
package httpserve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/accept"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
)

const (
	headerTimeout = time.Minute     // maximum time for the header of a request
	idleTimeout   = 2 * time.Minute // maximum time between requests; clients close idle connections sooner
)

// Options of Serve.
type Options struct {
	Handler http.Handler // required
	TLS     *tls.Config  // default: no TLS
	Logger  *slog.Logger // default: discards
	Server  string       // name of the server in the log, such as "the account"

	// MaxConnections bounds the open connections. At the limit, a new connection closes the
	// connection that has been idle the longest. If no connection is idle, connlimit.OverLimit
	// reports the new connection to Handler. Default: half of the file descriptors of the process.
	MaxConnections int

	// MaxHeader bounds the bytes of a request's header. Default: 64 KB.
	MaxHeader int

	// Grace is the time that requests have to complete after ctx has ended. Default: 0.
	Grace time.Duration

	// ConnContext derives the context for the requests of a new connection from the server's
	// context. Default: the server's context.
	ConnContext func(context.Context, net.Conn) context.Context

	// CancelAfter is the part of Grace after which the contexts of requests end.
	CancelAfter time.Duration
}

// Serve serves the clients of listener until ctx ends. It then closes the listener and all
// connections, and returns nil. It returns an error if serving fails before ctx ends.
func Serve(ctx context.Context, listener net.Listener, opts Options) error {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	requests, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	var connections, closing sync.WaitGroup
	server := &http.Server{
		Handler: opts.Handler, TLSConfig: opts.TLS,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: cmp.Or(opts.MaxHeader, 64<<10),
		BaseContext: func(net.Listener) context.Context { return requests },
		ConnContext: opts.ConnContext,
		ErrorLog:    slog.NewLogLogger(opts.Logger.Handler(), slog.LevelWarn),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				connections.Add(1)
			case http.StateClosed, http.StateHijacked:
				connections.Done()
			default:
			}
		},
	}
	connlimit.New(connlimit.Options{Limit: cmp.Or(opts.MaxConnections, max(1, connlimit.FileLimit()/2))}).Attach(server)
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	closing.Go(func() {
		<-serving.Done()
		stopServer(server, opts, cancelRequests) //nolint:contextcheck // it runs after ctx has ended
	})
	listener = accept.Retry(listener, accept.Options{Logger: opts.Logger, Server: opts.Server})
	serve := server.Serve
	if opts.TLS != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	err := serve(listener)
	stopServing()
	closing.Wait()
	connections.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// stopServer lets requests complete within opts.Grace, and closes all connections.
func stopServer(server *http.Server, opts Options, cancelRequests func()) {
	if opts.Grace > 0 {
		cancelling := time.AfterFunc(opts.CancelAfter, cancelRequests)
		defer cancelling.Stop()
		limit, cancel := context.WithTimeout(context.Background(), opts.Grace)
		defer cancel()
		if server.Shutdown(limit) == nil {
			return
		}
	}
	_ = server.Close() // close connections before requests are cancelled, so that no cancelled request has a response
	cancelRequests()
}
