// Package httpserve runs the HTTP server of an embedded engine. It limits clients that occupy connections, and its
// shutdown waits for all goroutines.
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
	headerTimeout = time.Minute     // maximum time to receive the header of a request
	idleTimeout   = 2 * time.Minute // maximum time between requests; clients usually close idle connections sooner
)

// Options configure Serve.
type Options struct {
	Handler http.Handler // required
	TLS     *tls.Config  // nil disables TLS
	Logger  *slog.Logger // default: discards
	Server  string       // name of the server in log messages, such as "the account"

	// MaxConnections limits the open connections. At the limit, a new connection replaces the connection that has been
	// idle longest. If none is idle, connlimit.OverLimit reports the new connection to Handler. Default: half of the
	// file descriptors of the process.
	MaxConnections int

	// MaxHeader limits the bytes of a request header. Default: 64 KB.
	MaxHeader int

	// Grace is how long running requests may continue after ctx has ended. Default: 0.
	Grace time.Duration

	// ConnContext derives the context of a connection's requests from the server's context. By default, they are equal.
	ConnContext func(context.Context, net.Conn) context.Context

	// CancelAfter is the part of Grace after which the contexts of running requests are canceled.
	CancelAfter time.Duration
}

// Serve serves the clients of listener until ctx ends. Then it closes the listener and all connections, and returns
// nil. If serving fails earlier, Serve returns the error.
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

// stopServer waits up to opts.Grace for running requests, and then closes all connections.
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
	_ = server.Close() // close connections before canceling requests, so that a canceled request sends no response
	cancelRequests()
}
