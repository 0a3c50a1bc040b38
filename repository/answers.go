package repository

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// Answers keeps what has come of asking a domain for the content of an open
// bundle in content mode domain.Request. Both methods fail with NotFound, as Find
// does, if the bundle is not open for the recipient, and can open nothing again
// that was closed meanwhile; they fail with Invalid if it is in another content
// mode. A frozen queue takes in what they bring.
type Answers interface {
	// Answer notes that the content of bundle id is object in the content store, and
	// what its body is. The first answer stays: a later one changes nothing. Answer
	// returns the bundle as stored, whose Object says which one that was. Its Trouble is zero.
	// An object that Content cannot have is Invalid.
	Answer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string, body domain.Body) (domain.Bundle, error)

	// Fail notes one more failure of the domain, why.Failures not being looked at,
	// and returns the bundle as stored. A bundle that has been answered stays as it
	// is. A call that is repeated after an Uncertain failure may count twice; nothing
	// but an operator's attention rests on the number.
	Fail(ctx context.Context, recipient domain.ActorID, id domain.BundleID, why domain.Trouble) (domain.Bundle, error)
}
