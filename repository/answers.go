package repository

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// Answers keeps the outcome of asking a domain for the content of an open
// bundle in content mode domain.Request. The methods with a recipient fail with NotFound, as Find
// does, if the bundle is not open for the recipient, and can open nothing again
// that was closed meanwhile; they fail with Invalid if it is in another content
// mode. A frozen queue takes in what they bring.
//
// An object is the content of one bundle, and is named in one call of Answer or AnswerAgain, and its
// repetitions.
type Answers interface {
	// Answer notes that the content of bundle id is object in the content store, and
	// what its body is. The first answer stays: a later one changes nothing. Answer
	// returns the bundle as stored, whose Object says which one that was. Its ContentFailure is zero.
	// An object that Content cannot have is Invalid.
	Answer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string, body domain.Body) (domain.Bundle, error)

	// Fail notes one more failure of the domain, why.Failures not being looked at,
	// and returns the bundle as stored. A bundle that has been answered stays as it
	// is, unless its content is marked as gone. A call that is repeated after an Uncertain failure may count twice; nothing
	// but an operator's attention rests on the number.
	Fail(ctx context.Context, recipient domain.ActorID, id domain.BundleID, why domain.ContentFailure) (domain.Bundle, error)

	// MarkGone notes that object, which is the content of bundle id, was deleted, and returns the
	// bundle as stored. A bundle that has another content, or none, stays as it is. The mark does not
	// keep a bundle from being acknowledged.
	MarkGone(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string) (domain.Bundle, error)

	// AnswerAgain is Answer for a bundle whose content gone is marked: object replaces it, without
	// a mark. A bundle that has another content, or none, stays as it is, so a call that is carried
	// out late does not bring back an object that was replaced.
	AnswerAgain(ctx context.Context, recipient domain.ActorID, id domain.BundleID, gone, object string, body domain.Body) (domain.Bundle, error)

	// BundleRecipients returns the recipients for which a bundle id is open: each of them may have
	// its own one. It may be a stale read.
	BundleRecipients(ctx context.Context, id domain.BundleID) ([]domain.ActorID, error)
}
