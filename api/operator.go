package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/domain"
)

// requireOperator refuses requests without the operator's token. The address of
// the client proves nothing: a reverse proxy on the same machine forwards the
// requests of all its clients, perhaps without a header that says so.
//
// An address with too many failed logins is refused for a while. Behind a proxy
// all clients have one address, and others must not lock out the operators. So
// the right token is accepted even then. A token that is short enough to be
// guessed is compared only if the last wrong token of the address is at least a
// second old; the answer does not show whether it was compared.
func (s *Server) requireOperator(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if principalOf(r.Context()) != nil { // it has the role that the table of rights requires
			next.ServeHTTP(w, r)
			return nil
		}
		isRight, err := s.isOperator(w, r, bearerOf(r))
		if err != nil {
			return err
		}
		if isRight {
			next.ServeHTTP(w, r)
			return nil
		}
		return missingOperator(w)
	})
}

// bearerOf returns the bearer token of a request, "" if it has none.
func bearerOf(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// missingOperator returns the refusal of a request without the token of the
// operators.
func missingOperator(w http.ResponseWriter) error {
	w.Header().Set("WWW-Authenticate", "Bearer")
	return refuse(missingToken, "The operator's token is missing or wrong. Send it as Authorization: Bearer TOKEN. It is the hub's setting admin.token (MESSAGEHUB_ADMIN_TOKEN); "+
		"without that setting, the file admin.token in the hub's data folder holds it.")
}

// isOperator reports whether token, which may be "", is one of the operators' tokens. It fails
// if the hub has no such token, or if the address of the client sent too many wrong ones.
func (s *Server) isOperator(w http.ResponseWriter, r *http.Request, token string) (bool, error) {
	if s.opts.AdminToken == "" && len(s.opts.AdminTokens) == 0 {
		return false, refuse(adminClosed, "This hub has no token for its operators: admin.token is not set, and the hub could not keep one in its data folder; its log says why. "+
			"Set admin.token (MESSAGEHUB_ADMIN_TOKEN) or repair the folder, and restart it.")
	}
	address := s.addressOf(r)
	now := s.opts.Clock()
	name := s.operatorName(token)
	isRight := name != ""
	if pause := s.logins.pause(address, now); pause > 0 && !s.acceptsWhileLocked(address, isRight, token, now) {
		s.metrics.loginsRefused.Inc()
		if token != "" {
			pause = guessInterval
		}
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(pause.Seconds()), 'f', -1, 64))
		return false, refuse(tooManyLogins, "There were too many requests without the operator's token from this address. Repeat the request after the pause, with the token.")
	}
	if isRight {
		rec := recordOf(r.Context())
		rec.note(slog.String("operator_token", name))
		rec.setPrincipal(identity.NewOperator(name))
		return true, nil
	}
	s.logins.fail(address, now)
	s.metrics.loginsFailed.Inc()
	s.opts.Logger.LogAttrs(r.Context(), slog.LevelWarn, "operator login failed",
		slog.String("request_id", recordOf(r.Context()).id), slog.String("remote", domain.Clip(r.RemoteAddr)),
		slog.Bool("token_shown", token != ""))
	return false, nil
}

// acceptsWhileLocked reports whether a request from an address with too many
// failed logins is accepted: its token is right and may be compared now.
func (s *Server) acceptsWhileLocked(address string, isRight bool, token string, now time.Time) bool {
	if token == "" {
		return false
	}
	isCompared := s.logins.allowGuess(address, isRight, now) || len(token) >= longToken
	return isRight && isCompared
}

// longToken is the length in characters from which a token cannot be guessed. Tokens
// that nodes generate are longer.
const longToken = 26

// An AdminToken is a token of operators. Only its hash is kept.
type AdminToken struct {
	Name   string
	SHA256 [sha256.Size]byte
}

// adminTokenName is the name of the token without a name.
const adminTokenName = "admin.token"

// operatorName returns the name of a token of operators, "" if it is not one.
// It compares the token with each of them in constant time.
func (s *Server) operatorName(token string) (name string) {
	return s.operatorOfSum(sha256.Sum256([]byte(token)))
}

// operatorOfSum returns the name of the token with a SHA-256, "" if no token
// has it.
func (s *Server) operatorOfSum(shown [sha256.Size]byte) (name string) {
	if s.opts.AdminToken != "" {
		right := sha256.Sum256([]byte(s.opts.AdminToken))
		if subtle.ConstantTimeCompare(shown[:], right[:]) == 1 {
			name = adminTokenName
		}
	}
	for _, t := range s.opts.AdminTokens {
		if subtle.ConstantTimeCompare(shown[:], t.SHA256[:]) == 1 {
			name = t.Name
		}
	}
	return name
}

// aboutActor finds the actor that an operator's request is about.
func (s *Server) aboutActor(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		actor, err := domain.ParseActorID(pathparam.Value(r, "actor"))
		if err != nil {
			return &problemError{problem: invalidActor, detail: err.Error(), cause: err}
		}
		recordOf(r.Context()).note(slog.String("actor", actor.String()))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
		return nil
	})
}
