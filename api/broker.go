package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	edge "github.com/messagehub/messagehub/api/broker"
	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// requireBroker refuses requests if the hub has no store for the broker.
func (s *Server) requireBroker(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.Broker == nil {
			return &problemError{problem: notProvisioned}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// brokerHost makes a Server the Host of the broker's routes.
type brokerHost struct{ server *Server }

func (h brokerHost) Handle(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return h.server.handle(func(w http.ResponseWriter, r *http.Request) error {
		err := serve(w, r)
		if errors.Is(err, broker.ErrUnauthenticated) {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		return asBrokerProblem(r.Context(), err)
	})
}

func (h brokerHost) IsOperator(w http.ResponseWriter, r *http.Request, token string) (bool, error) {
	if h.server.opts.Identity != nil && identity.IsSigned(token) {
		return h.server.hasOperatorRole(w, r, token)
	}
	return h.server.isOperator(w, r, token)
}

func (h brokerHost) ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, release func(), err error) {
	body, release, err = h.server.readBody(w, r, limit)
	if err != nil {
		release()
	}
	return body, release, err
}

func (h brokerHost) ReserveAnswer(ctx context.Context, owner string, n int64) (release func(), err error) {
	pool := h.server.largeAnswers
	if n <= smallAnswer {
		pool = h.server.smallAnswers
	}
	hold := pool.open(owner, paceOf(ctx).interruptWrite)
	if err := hold.acquire(ctx, min(n, pool.share)); err != nil {
		hold.close()
		return nil, err
	}
	return hold.close, nil
}

func (h brokerHost) Note(ctx context.Context, attrs ...slog.Attr) { recordOf(ctx).note(attrs...) }

// brokerFields are the form fields with whose name an Invalid error may start.
var brokerFields = []string{"callbackUrl", "name", "token"}

// asBrokerProblem converts an error of the broker to a problem. It returns nil if err is nil.
func asBrokerProblem(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, broker.ErrUnauthenticated):
		return &problemError{problem: missingCredentials, cause: err, detail: "Nothing was done: send the token that the route needs, such as that of the operators in X-Broker-Admin-Token."}
	case errors.Is(err, broker.ErrForbidden):
		return &problemError{problem: wrongCredentials, cause: err, detail: "Nothing was done: a token is wrong, or nothing has the name that the path or the credentials name."}
	case errors.Is(err, broker.ErrChanged):
		return &problemError{
			problem: preconditionFailed, cause: err,
			detail: "Nothing was changed: what is stored does not fulfil If-Match or If-Unmodified-Since, because it was changed or is not there. Read it, and repeat the request with its ETag or Last-Modified, or without a condition.",
		}
	case errors.Is(err, broker.ErrOtherContent):
		return &problemError{problem: idConflict, cause: err, detail: "Nothing was stored: a message with this X-Broker-Message-ID was sent within the last 24 hours, with other content. Send another one under an id of its own."}
	}
	if e, ok := errors.AsType[*edge.MediaTypeError](err); ok {
		return &problemError{problem: wrongContentType, cause: err, detail: "Nothing was done: " + e.Error() + "."}
	}
	if e, ok := errors.AsType[*edge.FormError](err); ok {
		return badForm(e.Field, e.Detail)
	}
	p := asProblem(ctx, err)
	field, detail, hasField := strings.Cut(p.detail, ": ")
	if header, isHeader := strings.CutPrefix(field, "/headers/"); hasField && isHeader && p.problem == invalid {
		p.detail = "X-Broker-Metadata-Headers: " + header + ": " + detail + "."
	}
	if hasField && p.problem == invalid && domain.KindOf(err) == domain.Invalid && slices.Contains(brokerFields, field) {
		return badForm(field, detail)
	}
	return p
}

func badForm(field, detail string) error {
	return &problemError{
		problem: invalid, detail: "Nothing was stored, because of what errors names. Correct it and send the form again.",
		faults: []bodyFault{{Pointer: "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(field), Detail: detail}},
	}
}
