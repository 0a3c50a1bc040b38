package hub

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A RetainedBundle is a bundle as an operator sees it, open or not.
type RetainedBundle struct {
	repository.FoundBundle
	run repository.Run // nil: its events are no longer retained
}

// HasEvents reports whether the events of the bundle are retained.
func (b *RetainedBundle) HasEvents() bool { return b.run != nil }

// Events yields the events of the bundle in order. It reads only as far as the caller iterates.
// An error ends the sequence.
func (b *RetainedBundle) Events(ctx context.Context) iter.Seq2[repository.StoredEvent, error] {
	if b.run == nil {
		return func(func(repository.StoredEvent, error) bool) {}
	}
	return b.run.Events(ctx)
}

// checkBody returns nil if the bundle has a body that can be read, else the reason.
func (b *RetainedBundle) checkBody() error {
	switch {
	case b.IsUnanswered():
		return domain.Errorf(domain.Conflict, "bundle %s: domain %s has not produced its content", b.ID, b.Cabinet.Origin)
	case b.run == nil:
		return domain.Errorf(domain.NotFound, "the events of bundle %s are no longer retained", b.ID)
	}
	return nil
}

// Bundle returns a retained bundle, open or closed. It fails with NotFound if the bundle is not
// retained.
func (o *Operator) Bundle(ctx context.Context, actor domain.ActorID, id domain.BundleID) (*RetainedBundle, error) {
	found, run, err := o.ops.Bundle(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return &RetainedBundle{found, run}, nil
}

// A BodyExcerpt is the part of a bundle's body that an operator has read.
type BodyExcerpt struct {
	Bundle RetainedBundle
	Body   []byte // the first bytes of the body
	IsCut  bool   // the body has more
}

// ViewBundle records that an operator reads the body of a bundle, and then returns up to limit bytes
// of the body. If the record cannot be stored, the body is not read. It fails with NotFound if
// the bundle or its events are not retained, and with Conflict if the domain has not produced the
// content.
func (o *Operator) ViewBundle(ctx context.Context, actor domain.ActorID, id domain.BundleID, limit int64, by AdminAction) (*BodyExcerpt, error) {
	b, err := o.Bundle(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	if err := b.checkBody(); err != nil {
		return nil, err
	}
	if err := o.carryOut(ctx, "look", actor, by, func() error { return o.ops.RecordView(ctx, actor, id, by) }, slog.String("bundle_id", id.String())); err != nil {
		return nil, err
	}
	body, err := o.hub.newPeeked(b.Bundle, 0, domain.Backlog{}, b.Events(ctx)).Open(ctx)
	if err != nil {
		return nil, err
	}
	body.LimitReadAhead(limit + 1)
	seen, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	shown := min(limit, int64(len(seen)))
	return &BodyExcerpt{*b, seen[:shown], int64(len(seen)) > shown}, nil
}
