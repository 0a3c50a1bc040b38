package console

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/api/identity"
)

// A Host is the server to which the pages are added.
type Host interface {
	// SignIn returns the operator whose token is token. It fails if the token is invalid, or if too
	// many wrong tokens came from the client's address. The caller passes the error to Problem.
	SignIn(w http.ResponseWriter, r *http.Request, token string) (*identity.Principal, error)

	// OperatorOf returns the operator whose token has the given SHA-256 sum, or nil if there is
	// none.
	OperatorOf(sum [sha256.Size]byte) *identity.Principal

	// Problem logs and counts an error, sets the HTTP headers that the error requires, and returns
	// its description. It panics with http.ErrAbortHandler if the client has disconnected.
	Problem(w http.ResponseWriter, r *http.Request, err error) Problem

	// ReadBody reads a body of up to limit bytes. It reserves memory for the body until the caller
	// calls release, which is unnecessary after an error.
	ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, release func(), err error)

	// AcquireCheck reserves the right to run a check until release is called. It fails if another
	// check runs, or if the server is stopping.
	AcquireCheck() (release func(), err error)

	// AcceptsGzip reports whether a client that sent the headers h accepts gzip.
	AcceptsGzip(h http.Header) bool

	// SetPrincipal adds the sender of the request to the request's log line.
	SetPrincipal(ctx context.Context, p *identity.Principal)

	// Note adds attributes to the request's log line.
	Note(ctx context.Context, attrs ...slog.Attr)
}

// A Problem is the description of an error for an operator.
type Problem struct {
	Status    int
	Title     string // short description without a full stop
	Detail    string // sentences
	RequestID string
}
