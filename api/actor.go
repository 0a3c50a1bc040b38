package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/domain"
)

const actorHeader = "X-Actor-Id"

type actorKey struct{}

// requireActor is middleware that determines the actor of a request. If that fails, answer turns
// the error into a response.
func (s *Server) requireActor(answer func(handler) http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return answer(func(w http.ResponseWriter, r *http.Request) error {
			actor, err := findActor(w, r)
			if err != nil {
				return err
			}
			recordOf(r.Context()).note(slog.String("actor", actor.String()))
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
			return nil
		})
	}
}

// findActor returns the actor of a request. Only findActor reads the header X-Actor-Id.
func findActor(w http.ResponseWriter, r *http.Request) (domain.ActorID, error) {
	p := principalOf(r.Context())
	values := r.Header[actorHeader]
	switch {
	case len(values) == 0 && p != nil:
		return onlyActor(p)
	case len(values) == 0:
		w.Header().Set("WWW-Authenticate", actorHeader)
		return domain.ActorID{}, refuse(missingActor, "Send the actor's id in the header %s.", actorHeader)
	case len(values) > 1:
		return domain.ActorID{}, refuse(invalidActor, "The header %s occurs %d times; send it once.", actorHeader, len(values))
	}
	actor, err := domain.ParseActorID(values[0])
	if err != nil {
		return actor, &problemError{problem: invalidActor, detail: "Header " + actorHeader + ": " + err.Error(), cause: err}
	}
	if p == nil {
		return actor, nil // without tokens, the header X-Actor-Id is trusted
	}
	if _, isGranted := p.Grant(actor); !isGranted {
		return domain.ActorID{}, refuse(missingRight, "The token may not act for the actor that the header %s names.", actorHeader)
	}
	return actor, nil
}

// onlyActor returns the actor of a request that names no actor. It fails unless the token grants
// exactly one actor.
func onlyActor(p *identity.Principal) (domain.ActorID, error) {
	grants := p.Grants()
	switch len(grants) {
	case 0:
		return domain.ActorID{}, refuse(missingRight, "The token belongs to no actor: neither its claim nor the hub's setting actors names one.")
	case 1:
		return grants[0].Actor, nil
	}
	return domain.ActorID{}, refuse(invalidActor, "The token may act for several actors; name one in the header %s.", actorHeader)
}

// actorOf returns the actor that requireActor has determined.
func actorOf(ctx context.Context) domain.ActorID {
	actor, _ := ctx.Value(actorKey{}).(domain.ActorID)
	return actor
}
