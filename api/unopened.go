package api

import (
	"crypto/rand"
	"net/http"
)

// Unopened returns the handler of a node that cannot open yet: /healthz answers that the process lives, and
// every other path with the problem not-ready, which has the checks that have failed. It reads no body, and
// closes the connection of a request that has one.
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
