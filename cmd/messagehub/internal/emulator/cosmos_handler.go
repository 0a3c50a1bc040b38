package emulator

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
)

// handler returns a handler for the requests of Cosmos DB and for /healthz,
// which also logs requests.
func (c *Cosmos) handler(account http.Handler) http.Handler {
	var printing sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			writeHealth(w)
			return
		}
		if connlimit.OverLimit(r.Context()) {
			w.Header().Set("Connection", "close")
			http.Error(w, "the emulator has as many connections as its file descriptors allow", http.StatusServiceUnavailable)
			return
		}
		if !c.LogRequests {
			account.ServeHTTP(w, r)
			return
		}
		began := time.Now()
		response := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		account.ServeHTTP(response, r)
		status := fmt.Sprint(response.status)
		if sub := w.Header().Get("X-Ms-Substatus"); sub != "" && sub != "0" {
			status += "/" + sub
		}
		printing.Lock()
		defer printing.Unlock()
		fmt.Fprintf(c.Err, "%s %s %s %s RU %s\n", r.Method, r.URL.EscapedPath(), status,
			cmp.Or(w.Header().Get("X-Ms-Request-Charge"), "0"), time.Since(began).Round(time.Microsecond))
	})
}

// A statusRecorder is a ResponseWriter that records the status.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}
