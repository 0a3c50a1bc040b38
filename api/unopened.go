package api

import (
	"crypto/rand"
	"net/http"
)

// Unopened returns the handler of a node whose stores are not open yet. For /healthz, it responds
// that the process is alive. For all other paths, it responds with the problem not-ready and the
// failed checks. It reads no body, and closes the connection of a request that has a body.
func Unopened(failed func() []FailedCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			writeJSON(w, http.StatusOK, status{Status: "ok"})
			return
		}
		err := &NotReadyError{Checks: failed()}
		writeProblem(w, rand.Text(), &problemError{problem: notReady, cause: err, detail: err.Error(), checks: err.Checks, close: r.ContentLength != 0})
	})
}
