package node

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A drainHandler serves requests until it is closed, and then waits for those under way.
// http.Server waits for them too, but stops waiting when it closes their connections.
type drainHandler struct {
	next http.Handler

	leaving atomic.Bool // connections are closed after their next answer

	inside sync.RWMutex // read-locked by each request
	closed bool
}

func (d *drainHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.inside.RLock()
	defer d.inside.RUnlock()
	if d.closed {
		panic(http.ErrAbortHandler)
	}
	if d.leaving.Load() {
		w.Header().Set("Connection", "close") // with HTTP/2 the server sends GOAWAY
	}
	d.next.ServeHTTP(w, r)
}

func (d *drainHandler) closeAndWait() {
	d.inside.Lock()
	defer d.inside.Unlock()
	d.closed = true
}

// serveUntilMoved serves for a while after the node was asked to stop, so that
// load balancers learn from /readyz to send requests elsewhere. Clients that
// keep a connection open are asked to open another one.
func (n *Node) serveUntilMoved(ctx context.Context) {
	n.door.leaving.Store(true)
	_ = clock.Sleep(ctx, n.drainDelay) // ctx does not end earlier
}
