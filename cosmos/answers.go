package cosmos

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A bundle in content mode request waits for its domain. A Peek requests the content from the domain and
// copies it into the folder of the bundle. One patch records the answer in the document of the bundle, on
// condition that the bundle is open and has no answer yet. A patch acts on the current document and
// returns it, so no read precedes the patch. The patch need not check the gate, because the state of a
// bundle changes only together with the gate, in one batch. Only the first answer is stored, and every
// later caller receives it. A Dequeue that reads the document before the answer fails with ErrUnanswered;
// if reads may be stale, it first checks that no answer is stored.
//
// An object may be deleted while its bundle is open. Then another patch, MarkGone, marks the content as
// gone, on condition that the bundle is open and the object is still its content. A Peek sees the mark in
// the document that it reads anyway, and requests the content again. The patch with the new answer is
// conditional on the mark and on the object that it replaces, so only one of several new answers is
// accepted. A patch that arrives after its call has ended is refused, because the bundle then names
// another object. So an object that was replaced, or discarded because another answer was first, never
// becomes the content again. Neither patch changes the write id of the bundle, so a concurrent Dequeue can
// still close the bundle.

var _ repository.Answers = (*Repository)(nil)

const (
	ifOnRequest  = ifOpen + " and c.content = '" + string(domain.Request) + "'"
	ifUnanswered = ifOnRequest + " and not is_defined(c.object)"
	ifLacking    = ifOnRequest + " and (not is_defined(c.object) or c.gone = true)"
)

// ifContentIs returns the condition that an object is the content of the bundle. The name of the object
// must contain no quotes; every caller has checked it.
func ifContentIs(object string) string { return ifOnRequest + " and c.object = '" + object + "'" }

// Answer implements repository.Answers.
func (r *Repository) Answer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string, body domain.Body) (domain.Bundle, error) {
	if err := repository.CheckObjectName(object); err != nil {
		return domain.Bundle{}, client.Classify("answer for bundle "+id.String(), err)
	}
	ops := client.NewPatch(bundleDocument, ifUnanswered)
	setContent(&ops, object, body)
	return r.patchContentRequest(ctx, "answer", recipient, id, ops, (*bundleDoc).isUnanswered)
}

// ReplaceAnswer implements repository.Answers.
func (r *Repository) ReplaceAnswer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, gone, object string, body domain.Body) (domain.Bundle, error) {
	for _, name := range []string{gone, object} {
		if err := repository.CheckObjectName(name); err != nil {
			return domain.Bundle{}, client.Classify("answer for bundle "+id.String(), err)
		}
	}
	ops := client.NewPatch(bundleDocument, ifContentIs(gone), "c.gone = true")
	setContent(&ops, object, body)
	ops.AppendSet("/gone", false)
	return r.patchContentRequest(ctx, "answer again", recipient, id, ops, func(d *bundleDoc) bool { return d.Gone && d.Object == gone })
}

func setContent(ops *azcosmos.PatchOperations, object string, body domain.Body) {
	ops.AppendSet("/object", object)
	ops.AppendSet("/bodyLength", body.Length)
	ops.AppendSet("/bodyDigest", body.Digest[:])
	ops.AppendSet("/trouble/failures", 0) // sets one member at a time, to retain unknown members
	ops.AppendSet("/trouble/reason", "")
	ops.AppendSet("/trouble/text", "")
	ops.AppendSet("/trouble/call", "")
}

// MarkGone implements repository.Answers.
func (r *Repository) MarkGone(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string) (domain.Bundle, error) {
	if err := repository.CheckObjectName(object); err != nil {
		return domain.Bundle{}, client.Classify("mark the content of bundle "+id.String(), err)
	}
	ops := client.NewPatch(bundleDocument, ifContentIs(object))
	ops.AppendSet("/gone", true)
	return r.patchContentRequest(ctx, "mark content", recipient, id, ops, func(d *bundleDoc) bool { return d.Object == object && !d.Gone })
}

// BundleRecipients implements repository.Answers. It queries all partitions by the id, which Cosmos
// indexes.
func (r *Repository) BundleRecipients(ctx context.Context, id domain.BundleID) ([]domain.ActorID, error) {
	what := "find the recipients of bundle " + id.String()
	docs, err := client.All[bundleState](ctx, r.beginCall("find recipients").QueryAllPartitions(r.db.bundles, id.String(),
		"SELECT c.id, c.recipient, c.state, c.v FROM c WHERE c.id = @id", azcosmos.QueryParameter{Name: "@id", Value: id.String()}))
	if err != nil {
		return nil, client.Classify(what, err)
	}
	var recipients []domain.ActorID
	for _, d := range docs {
		if d.State != stateOpen {
			continue
		}
		recipient, err := domain.ParseActorID(d.Recipient)
		if err != nil {
			return nil, domain.Errorf(domain.Damaged, "%s: %w", what, err)
		}
		recipients = append(recipients, recipient)
	}
	return recipients, nil
}

// Fail implements repository.Answers. The patch stores the id of the call, so that a failure is counted
// once even if the reply is lost.
func (r *Repository) Fail(ctx context.Context, recipient domain.ActorID, id domain.BundleID, why domain.ContentFailure) (domain.Bundle, error) {
	call := r.client.NewID()
	ops := client.NewPatch(bundleDocument, ifLacking, "c.trouble.call != '"+call+"'")
	ops.AppendIncrement("/trouble/failures", 1)
	ops.AppendSet("/trouble/reason", why.Reason)
	ops.AppendSet("/trouble/text", why.Text)
	ops.AppendSet("/trouble/call", call)
	return r.patchContentRequest(ctx, "fail", recipient, id, ops, func(d *bundleDoc) bool {
		return (d.isUnanswered() || d.Gone) && (d.ContentFailure == nil || d.ContentFailure.Call != call)
	})
}

// A bundleState holds the members of a bundle that BundleRecipients reads.
type bundleState struct {
	ID        string `json:"id"`
	Recipient string `json:"recipient"`
	State     string `json:"state"`
	client.FormatNumber
}

// patchContentRequest patches a bundle in content mode request, and returns the resulting bundle. If the
// conditions of the patch do not hold, the bundle is not changed. isPending reports whether the
// conditions hold for an open bundle.
func (r *Repository) patchContentRequest(ctx context.Context, what string, recipient domain.ActorID, id domain.BundleID,
	ops azcosmos.PatchOperations, isPending func(*bundleDoc) bool,
) (bundle domain.Bundle, err error) {
	c := r.beginCall(what)
	err = c.Retry(ctx, func() error {
		doc := &bundleDoc{}
		// A crash before this write may leave an unused object in the folder of the bundle; the next Peek
		// requests the content again. If the mark of a missing object was not written, the next download
		// writes it. After this write, the answer, the mark or the failure is stored; a failure is counted
		// once.
		err := c.Patch(ctx, r.db.bundles, recipient.String(), id.String(), ops, doc)
		switch {
		case client.IsNotFound(err):
			return errNotOpen(id)
		case client.IsRefused(err): // the bundle is not open, it has other content, or an earlier attempt was applied
			if doc, err = c.openNow(ctx, recipient, id); err != nil {
				return err
			}
			if bundle, err = doc.toBundle(); err != nil {
				return err
			}
			switch {
			case bundle.Content != domain.Request:
				return domain.Errorf(domain.Invalid, "bundle %s has its content already: it is in mode %s", id, bundle.Content)
			case isPending(doc):
				return client.ErrStale
			}
			return nil
		case err == nil:
			bundle, err = doc.toBundle()
		}
		return err
	})
	return bundle, c.Outcome(what+" for bundle "+id.String(), err)
}
