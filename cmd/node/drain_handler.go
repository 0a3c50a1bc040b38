package node

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A drainHandler serves requests until it is closed; closeAndWait waits for the
// requests in progress. http.Server.Shutdown also waits for them, but Close
// does not wait for handlers.
type drainHandler struct {
	next http.Handler

	leaving atomic.Bool // each connection must be closed after its next response

	inside sync.RWMutex // locked for reading by each request
	closed bool
}

func (d *drainHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.inside.RLock()
	defer d.inside.RUnlock()
	if d.closed {
		panic(http.ErrAbortHandler)
	}
	if d.leaving.Load() {
		w.Header().Set("Connection", "close") // for HTTP/2, this header makes the server send GOAWAY
	}
	d.next.ServeHTTP(w, r)
}

func (d *drainHandler) closeAndWait() {
	d.inside.Lock()
	defer d.inside.Unlock()
	d.closed = true
}

// serveUntilMoved continues to serve for the drain delay after the node was
// asked to stop, so that load balancers receive the 503 of /readyz and use
// other nodes. Each response asks the client to close its connection.
func (n *Node) serveUntilMoved(ctx context.Context) {
	n.handler.leaving.Store(true)
	_ = clock.Sleep(ctx, n.drainDelay) // ctx never ends during the delay
}
