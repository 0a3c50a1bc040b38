package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// recoverPanics responds to a panic with status 500, or aborts the connection if the response has
// started. It logs the panic and its stack.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer answerPanic(w, recordOf(r.Context()))
		next.ServeHTTP(w, r)
	})
}

// answerPanic recovers from a panic and responds. The caller must defer it.
func answerPanic(w http.ResponseWriter, rec *requestRecord) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	rec.err = fmt.Errorf("panic: %v", p)
	rec.note(slog.String("stack", string(debug.Stack())))
	if answer, ok := w.(*response); !ok || answer.status != 0 {
		panic(http.ErrAbortHandler)
	}
	rec.problem = internal
	writeProblem(w, rec.id, &problemError{problem: internal})
}
