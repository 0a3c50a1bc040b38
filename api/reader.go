package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/domain/inspect"
)

type readerKey struct{}

// requireReader determines the reader: the actor in the header X-Actor-Id or, without this header,
// an operator with a token. If the header is present, a token is ignored, because it may be for a
// proxy.
func (s *Server) requireReader(next http.Handler) http.Handler {
	actor := s.requireActor(s.handle)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serveReader(w, r, next, inspect.Reader{Actor: actorOf(r.Context())})
	}))
	operator := s.requireOperator(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recordOf(r.Context()).note(slog.Bool("operator", true))
		serveReader(w, r, next, inspect.Reader{IsOperator: true})
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := principalOf(r.Context()); p != nil && !p.Has(identity.RoleOperatorRead) {
			actor.ServeHTTP(w, r)
			return
		}
		if len(r.Header[actorHeader]) == 0 && r.Header.Get("Authorization") != "" {
			operator.ServeHTTP(w, r)
			return
		}
		actor.ServeHTTP(w, r)
	})
}

func serveReader(w http.ResponseWriter, r *http.Request, next http.Handler, reader inspect.Reader) {
	next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), readerKey{}, reader)))
}

// readerOf returns the reader that requireReader has determined.
func readerOf(ctx context.Context) inspect.Reader {
	reader, _ := ctx.Value(readerKey{}).(inspect.Reader)
	return reader
}
