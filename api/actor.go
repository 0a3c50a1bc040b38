package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/domain"
)

const actorHeader = "X-Actor-Id"

type actorKey struct{}

// requireActor finds out which actor sends a request. It is the only place that
// knows how.
func (s *Server) requireActor(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		values := r.Header[actorHeader]
		switch {
		case len(values) == 0:
			w.Header().Set("WWW-Authenticate", actorHeader)
			return refuse(missingActor, "Send the actor's id in the header %s.", actorHeader)
		case len(values) > 1:
			return refuse(invalidActor, "The header %s is there %d times; send it once.", actorHeader, len(values))
		}
		actor, err := domain.ParseActorID(values[0])
		if err != nil {
			return &problemError{problem: invalidActor, detail: "Header " + actorHeader + ": " + err.Error(), cause: err}
		}
		recordOf(r.Context()).note(slog.String("actor", actor.String()))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
		return nil
	})
}

// actorOf returns the actor that requireActor found.
func actorOf(ctx context.Context) domain.ActorID {
	actor, _ := ctx.Value(actorKey{}).(domain.ActorID)
	return actor
}
