package repository

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// Answers stores the outcome of content requests: the content or the failure that a domain returned for
// an open bundle in content mode domain.Request. The methods with a parameter recipient fail with
// NotFound, as Find does, if the bundle is not open for the recipient. They never reopen a closed
// bundle. They fail with Invalid if the bundle has another content mode. They also work while the queue
// is frozen.
//
// The caller uses an object as the content of one bundle only: it passes the name of the object to one
// call of Answer or ReplaceAnswer, and to repetitions of this call.
type Answers interface {
	// Answer records object, a name in the content store, as the content of bundle id, and body as its
	// length and digest. Only the first call for a bundle has an effect. Answer returns the stored
	// bundle, whose Object is that of the first call and whose ContentFailure is zero. It fails with
	// Invalid if Content does not accept the name.
	Answer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string, body domain.Body) (domain.Bundle, error)

	// Fail records another failure of the domain, and returns the stored bundle. It ignores
	// why.Failures. It changes nothing if the bundle has content that is not marked as gone. A call
	// that is repeated after an Uncertain failure may count the failure twice, which is harmless: the
	// count only alerts operators.
	Fail(ctx context.Context, recipient domain.ActorID, id domain.BundleID, why domain.ContentFailure) (domain.Bundle, error)

	// MarkGone marks the content of a bundle as deleted if it is the given object, and returns the
	// stored bundle. It does not change a bundle with other content or without content. A marked bundle
	// can still be acknowledged.
	MarkGone(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string) (domain.Bundle, error)

	// ReplaceAnswer replaces the content of bundle id, which is the object gone and is marked by MarkGone,
	// with object, and removes the mark. It does not change a bundle with other content or without
	// content, so a late call cannot restore an object that was replaced.
	ReplaceAnswer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, gone, object string, body domain.Body) (domain.Bundle, error)

	// BundleRecipients returns the recipients that have an open bundle with this id; several recipients
	// may have a bundle with the same id. The result may be stale.
	BundleRecipients(ctx context.Context, id domain.BundleID) ([]domain.ActorID, error)
}
