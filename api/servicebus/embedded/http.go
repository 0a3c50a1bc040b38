package embedded

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// webSocketPath is the path of AMQP over WebSockets.
const webSocketPath = "/$servicebus/websocket"

// The limits of HTTP requests.
const (
	maxHeaderBytes = 64 << 10
	maxBodyBytes   = 1 << 20
	requestTimeout = time.Minute // requestTimeout limits the time to read a request from a client, and the time to write the response
	idleTimeout    = time.Minute // idleTimeout limits the time between two requests of a connection
)

// slotKey is the context key under which a request stores its connectionSlot.
type slotKey struct{}

// httpServer returns a server for HTTP connections. The contexts of its requests end with ctx. running counts
// connections and requests; the caller must also count the goroutine that runs the server.
func (n *Namespace) httpServer(ctx context.Context, handler http.Handler, running *sync.WaitGroup) *http.Server {
	limited := n.limitRequests(handler)
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.Add(1) // ConnState no longer counts a connection after it was hijacked
			defer running.Done()
			limited.ServeHTTP(w, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				running.Add(1)
			case http.StateClosed, http.StateHijacked:
				running.Done()
			default:
			}
		},
		ReadHeaderTimeout: n.options.TokenTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, nc net.Conn) context.Context {
			if c, ok := nc.(*peekedConn); ok {
				return context.WithValue(ctx, slotKey{}, c.place)
			}
			return ctx
		},
		ErrorLog: slog.NewLogLogger(n.options.Logger.Handler(), slog.LevelDebug), // debug, because clients cause most of these errors
	}
}

// limitRequests limits the size of bodies, and closes connections after requests without a valid token.
func (n *Namespace) limitRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == webSocketPath {
			next.ServeHTTP(w, r)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
		t := &tokenWriter{ResponseWriter: w, authorized: n.options.Anonymous}
		next.ServeHTTP(t, r.WithContext(context.WithValue(r.Context(), tokenKey{}, t)))
	})
}

// tokenKey is the context key under which a request stores its tokenWriter.
type tokenKey struct{}

// A tokenWriter closes the connection after the response to a request without a valid token.
type tokenWriter struct {
	http.ResponseWriter
	authorized bool
	began      bool
}

// requestAuthorized records that a request has a valid token.
func requestAuthorized(r *http.Request) {
	if t, ok := r.Context().Value(tokenKey{}).(*tokenWriter); ok {
		t.authorized = true
	}
	if p, ok := r.Context().Value(slotKey{}).(*connectionSlot); ok {
		p.recordAuthorized()
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *tokenWriter) WriteHeader(status int) {
	if !w.began && !w.authorized {
		w.Header().Set("Connection", "close")
	}
	w.began = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *tokenWriter) Write(b []byte) (int, error) {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the wrapped writer.
func (w *tokenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// webSocket serves AMQP over a WebSocket. A connection accepted by Serve has a slot. A connection accepted by another
// HTTP server, which calls Handler, has none.
func (n *Namespace) webSocket(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	p, _ := r.Context().Value(slotKey{}).(*connectionSlot)
	if p == nil {
		if p = n.beginNetwork(cancel); p == nil {
			http.Error(w, "too many connections", http.StatusServiceUnavailable)
			return
		}
		defer p.endConnection()
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"AMQPWSB10", "amqp"}}) // Accept refuses requests from web pages of other origins
	if err != nil {
		return // Accept has already written an error response
	}
	const largest = 1 << 20 // largest limits the size of a WebSocket message, which may contain only a part of an AMQP frame
	ws.SetReadLimit(largest)
	stop := context.AfterFunc(n.ctx, cancel) //nolint:contextcheck // ctx ends with the request or with the namespace
	defer stop()
	n.serveAMQP(ctx, websocket.NetConn(context.WithoutCancel(ctx), ws, websocket.MessageBinary), n.options.TokenTimeout, p.recordAuthorized)
}
