package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/domain/deadletters"
)

// consolePath is the path of the console, which contains pages for operators.
const consolePath = "/console"

// consoleHost makes a Server the Host of the console.
type consoleHost struct{ server *Server }

func (h consoleHost) SignIn(w http.ResponseWriter, r *http.Request, token string) (*identity.Principal, error) {
	isRight, err := h.server.isOperator(w, r, token)
	switch {
	case err != nil:
		return nil, err
	case !isRight:
		return nil, refuse(missingToken, "This is not a token of the operators of this hub.")
	}
	return identity.NewOperator(h.server.operatorName(token)), nil
}

func (h consoleHost) OperatorOf(sum [sha256.Size]byte) *identity.Principal {
	if name := h.server.operatorOfSum(sum); name != "" {
		return identity.NewOperator(name)
	}
	return nil
}

func (h consoleHost) Problem(w http.ResponseWriter, r *http.Request, err error) console.Problem {
	if e, ok := errors.AsType[*deadletters.BusError](err); ok {
		err = busProblemOf(e)
	}
	p := recordError(r.Context(), err)
	document := documentOf(recordOf(r.Context()).id, p)
	prepareProblem(w, p)
	return console.Problem{Status: document.Status, Title: document.Title, Detail: document.Detail, RequestID: recordOf(r.Context()).id}
}

func (h consoleHost) ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, release func(), err error) {
	body, release, err = h.server.readBody(w, r, limit)
	if err != nil {
		release()
	}
	return body, release, err
}

func (h consoleHost) AcquireCheck() (release func(), err error) {
	if err := h.server.acquireCheck(); err != nil {
		return nil, err
	}
	return func() { h.server.checks.Release(1) }, nil
}

func (h consoleHost) AcceptsGzip(header http.Header) bool { return acceptsGzip(header) }

func (h consoleHost) SetPrincipal(ctx context.Context, p *identity.Principal) {
	recordOf(ctx).setPrincipal(p)
}

func (h consoleHost) Note(ctx context.Context, attrs ...slog.Attr) { recordOf(ctx).note(attrs...) }
