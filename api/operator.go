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

// requireOperator refuses requests without an operator token. It does not trust loopback addresses:
// a reverse proxy on the same machine forwards the requests of all its clients, perhaps without a
// header that reveals this.
//
// An address with too many failed logins is refused for a while. Behind a proxy, all clients have
// the same address, and a client must not lock out the operators. So the right token is accepted
// even from a refused address. If a token is short enough to be guessed, it is compared only if the
// last wrong token of the address is at least a second old. The response does not reveal whether
// the token was compared.
func (s *Server) requireOperator(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if principalOf(r.Context()) != nil { // authorize has already checked that the sender has a required role
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

// bearerOf returns the bearer token of a request, or "" if the request contains none.
func bearerOf(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// missingOperator returns the error for a request without a valid operator token.
func missingOperator(w http.ResponseWriter) error {
	w.Header().Set("WWW-Authenticate", "Bearer")
	return refuse(missingToken, "The operator's token is missing or wrong. Send it as Authorization: Bearer TOKEN. It is the hub's setting admin.token (MESSAGEHUB_ADMIN_TOKEN) or one of admin.tokens; "+
		"without these settings, the file admin.token in the hub's data folder holds it.")
}

// isOperator reports whether token, which may be "", is an operator token. It fails if the hub has
// no operator token, or if the address of the client has sent too many wrong tokens.
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
		slog.String("request_id", recordOf(r.Context()).id), slog.String("remote", domain.Shorten(r.RemoteAddr)),
		slog.Bool("token_shown", token != ""))
	return false, nil
}

// acceptsWhileLocked reports whether a request is accepted although its address has too many failed
// logins: its token is right and may be compared now.
func (s *Server) acceptsWhileLocked(address string, isRight bool, token string, now time.Time) bool {
	if token == "" {
		return false
	}
	isCompared := s.logins.allowGuess(address, isRight, now) || len(token) >= longToken
	return isRight && isCompared
}

// longToken is the minimum length, in characters, of a token that cannot be guessed. The tokens
// that nodes generate are longer.
const longToken = 26

// An AdminToken is an additional operator token. Only its hash is stored.
type AdminToken struct {
	Name   string
	SHA256 [sha256.Size]byte
}

// adminTokenName is the name of the operator token in Options.AdminToken.
const adminTokenName = "admin.token"

// operatorName returns the name of an operator token, or "" if the token is not valid. It compares
// the token with all valid tokens in constant time.
func (s *Server) operatorName(token string) (name string) {
	return s.operatorOfSum(sha256.Sum256([]byte(token)))
}

// operatorOfSum returns the name of the operator token with the SHA-256 sum shown. If no token
// has that sum, it returns "".
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

// aboutActor determines the actor whose mailbox an operator's request concerns.
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
