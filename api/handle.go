package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// A handler responds to a request. If it returns an error, it must not have written a response.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle converts h to an http.HandlerFunc, which responds to an error of h with a problem.
func (s *Server) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil && !errors.Is(err, errParked) {
			s.fail(w, r, err)
		}
	}
}

// fail responds with the problem for err. If the client has disconnected, it aborts the
// connection.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	refused := recordError(r.Context(), err)
	writeProblem(w, recordOf(r.Context()).id, refused)
}

// recordError logs and counts err, and returns the problem for it. It panics with
// http.ErrAbortHandler if the client has disconnected.
func recordError(ctx context.Context, err error) *problemError {
	rec := recordOf(ctx)
	rec.err = err
	if isClientGone(ctx, err) {
		panic(http.ErrAbortHandler)
	}
	refused := asProblem(ctx, err)
	rec.problem = refused.problem
	return refused
}

// isClientGone reports whether err was caused by a client that disconnected.
func isClientGone(ctx context.Context, err error) bool {
	if _, ok := errors.AsType[*problemError](err); ok {
		return false
	}
	return errors.Is(context.Cause(ctx), context.Canceled)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // escaping would make links unreadable, because they contain ampersands
	_ = encoder.Encode(body)     // Encode fails if the client has disconnected
}
