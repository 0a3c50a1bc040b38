package node

import (
	"net/http"
	"sync"
)

// A door lets requests in until it is shut, and waits for those inside.
// http.Server waits for them too, but not any more once it cuts them off.
type door struct {
	next http.Handler

	inside sync.RWMutex // held for reading by each request
	closed bool
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.inside.RLock()
	defer d.inside.RUnlock()
	if d.closed {
		panic(http.ErrAbortHandler)
	}
	d.next.ServeHTTP(w, r)
}

func (d *door) shut() {
	d.inside.Lock()
	defer d.inside.Unlock()
	d.closed = true
}
