package cosmos

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A bundle in content mode request waits for its domain. A Peek asks the domain and copies
// its content into the folder of the bundle. The result is recorded in the bundle's
// document, by one patch on condition that the bundle is open and has no answer yet. A
// patch acts on the current document and returns it, so no read precedes it. It needs no
// gate, because bundle and gate are always written in one batch. The first answer stays,
// and every other caller gets it. A Dequeue that has read the document just before is
// refused by its own condition, and reads again.

var _ repository.Answers = (*Repository)(nil)

const ifUnanswered = ifOpen + " and c.content = '" + string(domain.Request) + "' and not is_defined(c.object)"

// Answer implements repository.Answers.
func (r *Repository) Answer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string, body domain.Body) (domain.Bundle, error) {
	if err := repository.CheckObjectName(object); err != nil {
		return domain.Bundle{}, client.Classify("answer for bundle "+id.String(), err)
	}
	ops := client.NewPatch(bundleDocument, ifUnanswered)
	ops.AppendSet("/object", object)
	ops.AppendSet("/bodyLength", body.Length)
	ops.AppendSet("/bodyDigest", body.Digest[:])
	ops.AppendSet("/trouble/failures", 0) // one by one, for the members that are not known
	ops.AppendSet("/trouble/reason", "")
	ops.AppendSet("/trouble/text", "")
	ops.AppendSet("/trouble/call", "")
	return r.note(ctx, "answer", recipient, id, ops, func(*bundleDoc) bool { return false })
}

// Fail implements repository.Answers. The call leaves its id, so that it counts
// once though its reply be lost.
func (r *Repository) Fail(ctx context.Context, recipient domain.ActorID, id domain.BundleID, why domain.Trouble) (domain.Bundle, error) {
	call := r.client.NewID()
	ops := client.NewPatch(bundleDocument, ifUnanswered, "c.trouble.call != '"+call+"'")
	ops.AppendIncrement("/trouble/failures", 1)
	ops.AppendSet("/trouble/reason", why.Reason)
	ops.AppendSet("/trouble/text", why.Text)
	ops.AppendSet("/trouble/call", call)
	return r.note(ctx, "fail", recipient, id, ops, func(d *bundleDoc) bool { return d.Trouble != nil && d.Trouble.Call == call })
}

// note carries out a patch of a bundle that waits for its answer, and returns the
// bundle as it is then. One that has its answer stays as it is.
func (r *Repository) note(ctx context.Context, what string, recipient domain.ActorID, id domain.BundleID,
	ops azcosmos.PatchOperations, isDone func(*bundleDoc) bool,
) (bundle domain.Bundle, err error) {
	c := r.begin(what)
	err = c.Retry(ctx, func() error {
		doc := &bundleDoc{}
		// A crash before this write leaves the bundle unanswered, and an object in its folder
		// that no document refers to; the next Peek asks the domain again. A crash after it
		// leaves the answer, or the failure, which counts once.
		err := c.Patch(ctx, r.db.bundles, recipient.String(), id.String(), ops, doc)
		switch {
		case client.IsNotFound(err):
			return errNotOpen(id)
		case client.IsRefused(err): // it has an answer, or this very patch was carried out before, or it is not open
			if doc, err = c.openNow(ctx, recipient, id); err != nil {
				return err
			}
			if bundle, err = doc.bundle(); err != nil {
				return err
			}
			switch {
			case bundle.Content != domain.Request:
				return domain.Errorf(domain.Invalid, "bundle %s has its content already: it is in mode %s", id, bundle.Content)
			case bundle.IsUnanswered() && !isDone(doc):
				return client.ErrStale
			}
			return nil
		case err == nil:
			bundle, err = doc.bundle()
		}
		return err
	})
	return bundle, c.Outcome(what+" for bundle "+id.String(), err)
}
