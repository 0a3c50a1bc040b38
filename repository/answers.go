package repository

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// Answers keeps the outcome of requesting the content of an open bundle in content mode domain.Request
// from its domain. The methods with a recipient fail with NotFound, as Find does, if the bundle is not
// open for the recipient, and never reopen a closed bundle. They fail with Invalid if the bundle is in
// another content mode. They also work while the queue is frozen.
//
// An object is the content of only one bundle. It is named in one call of Answer or AnswerAgain, and in
// repetitions of that call.
type Answers interface {
	// Answer records that object in the content store is the content of bundle id, and that its body is
	// body. The first answer stays: a later one changes nothing. Answer returns the bundle as stored;
	// its Object is that of the first answer, and its ContentFailure is zero. An object name that Content does
	// not accept is Invalid.
	Answer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string, body domain.Body) (domain.Bundle, error)

	// Fail records another failure of the domain, and returns the bundle as stored. It ignores
	// why.Failures. It changes nothing if the bundle has been answered, unless its content is marked as
	// gone. A call that is repeated after an Uncertain failure may count twice: the number only draws
	// an operator's attention.
	Fail(ctx context.Context, recipient domain.ActorID, id domain.BundleID, why domain.ContentFailure) (domain.Bundle, error)

	// MarkGone records that object, the content of bundle id, was deleted, and returns the bundle as
	// stored. A bundle with other content, or without content, stays as it is. The mark does not
	// prevent the bundle from being acknowledged.
	MarkGone(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string) (domain.Bundle, error)

	// AnswerAgain is Answer for a bundle whose content gone is marked: object replaces it, and the mark
	// is removed. A bundle with other content, or without content, stays as it is, so a late call
	// cannot restore an object that was replaced.
	AnswerAgain(ctx context.Context, recipient domain.ActorID, id domain.BundleID, gone, object string, body domain.Body) (domain.Bundle, error)

	// BundleRecipients returns the recipients for which a bundle id is open: several recipients may
	// have a bundle with the same id. It may be a stale read.
	BundleRecipients(ctx context.Context, id domain.BundleID) ([]domain.ActorID, error)
}
