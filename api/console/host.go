package console

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/api/identity"
)

// A Host is the server whose listener also serves the pages.
type Host interface {
	// SignIn returns the operator with a token. It fails if the token is not valid, or if the
	// client's address has sent too many wrong tokens. The caller passes the error to Problem.
	SignIn(w http.ResponseWriter, r *http.Request, token string) (*identity.Principal, error)

	// OperatorOf returns the operator whose token has this SHA-256 sum, or nil if no token has the
	// sum.
	OperatorOf(sum [sha256.Size]byte) *identity.Principal

	// Problem logs and counts an error, sets the headers of its problem, and returns the
	// problem. It panics with http.ErrAbortHandler if the client has disconnected.
	Problem(w http.ResponseWriter, r *http.Request, err error) Problem

	// ReadBody reads a body of up to limit bytes. It reserves memory for the body until the caller
	// calls release. After an error, release need not be called.
	ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, release func(), err error)

	// AcquireCheck returns a function that the caller calls after the check. It fails if another
	// check runs, or if the server is stopping.
	AcquireCheck() (release func(), err error)

	// AcceptsGzip reports whether the client of a request accepts gzip.
	AcceptsGzip(h http.Header) bool

	// SetPrincipal adds the sender of the request to the log line of the
	// request.
	SetPrincipal(ctx context.Context, p *identity.Principal)

	// Note adds attributes to the log line of the request.
	Note(ctx context.Context, attrs ...slog.Attr)
}

// A Problem is the description of an error for an operator.
type Problem struct {
	Status    int
	Title     string // text without a full stop
	Detail    string // sentences
	RequestID string
}
