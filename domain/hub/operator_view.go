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

// A RetainedBundle is a stored bundle, open or closed, that an operator can read.
type RetainedBundle struct {
	repository.FoundBundle
	run repository.Run // nil if the events are no longer retained
}

// HasEvents reports whether the events of the bundle are retained.
func (b *RetainedBundle) HasEvents() bool { return b.run != nil }

// Events yields the events of the bundle in order. It reads no further than the caller iterates. After an error it
// ends.
func (b *RetainedBundle) Events(ctx context.Context) iter.Seq2[repository.StoredEvent, error] {
	if b.run == nil {
		return func(func(repository.StoredEvent, error) bool) {}
	}
	return b.run.Events(ctx)
}

// checkBody returns an error if the bundle has no readable body.
func (b *RetainedBundle) checkBody() error {
	switch {
	case b.IsUnanswered():
		return domain.Errorf(domain.Conflict, "bundle %s: domain %s has not produced its content", b.ID, b.Cabinet.Origin)
	case b.run == nil:
		return domain.Errorf(domain.NotFound, "the events of bundle %s are no longer retained", b.ID)
	}
	return nil
}

// Bundle returns an open or closed bundle. It fails with NotFound if the bundle is no longer retained.
func (o *Operator) Bundle(ctx context.Context, actor domain.ActorID, id domain.BundleID) (*RetainedBundle, error) {
	found, run, err := o.ops.Bundle(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return &RetainedBundle{found, run}, nil
}

// A BodyExcerpt is the part of a bundle's body that an operator reads.
type BodyExcerpt struct {
	Bundle RetainedBundle
	Body   []byte // the first bytes of the body
	IsCut  bool   // true if the body is longer
}

// ViewBundle returns up to limit bytes of a bundle's body. It first records that an operator reads the body; if that
// fails, it returns nothing. It fails with NotFound if the bundle or its events are not retained, and with Conflict if
// the domain has not produced the content.
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
