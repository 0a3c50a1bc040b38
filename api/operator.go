package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/messagehub/messagehub/domain"
)

// requireOperator finds out whether an operator sends a request. It is the only
// place that knows how: by the token, if one is configured; else whoever is on this
// machine is one, as long as the hub serves nobody else.
//
// A web page that an operator looks at is on this machine as well. It cannot send
// what these routes take: localOnly keeps out names of its own, every body must be
// application/json, which a browser sends to another site only if that allows it,
// and no page may read the answer to a GET.
func (s *Server) requireOperator(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		switch {
		case s.opts.AdminToken != "":
			scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			if !strings.EqualFold(scheme, "Bearer") || !isSame(token, s.opts.AdminToken) {
				w.Header().Set("WWW-Authenticate", "Bearer")
				return refuse(missingToken, "Send the token of the hub's setting admin.token: Authorization: Bearer TOKEN.")
			}
		case !s.opts.LocalOnly:
			return refuse(adminClosed, "This hub serves other machines and has no token for its operators, so nobody may operate it over HTTP. "+
				"Set admin.token (MESSAGEHUB_ADMIN_TOKEN) and restart it, or let it listen to a loopback address without --insecure.")
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// isSame takes as long whatever the difference, the lengths included.
func isSame(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// aboutActor finds the actor whom an operator's request is about.
func (s *Server) aboutActor(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		name := chi.URLParam(r, "actor")
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		actor, err := domain.ParseActorID(name)
		if err != nil {
			return &problemError{problem: invalidActor, detail: err.Error(), cause: err}
		}
		recordOf(r.Context()).note(slog.String("actor", actor.String()))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
		return nil
	})
}
