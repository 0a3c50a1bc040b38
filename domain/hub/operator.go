package hub

import (
	"context"
	"log/slog"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// ErrFrozen reports that an operator has frozen a queue. Until it is thawed, Peek and Dequeue fail with this error.
var ErrFrozen = repository.ErrFrozen

// An AdminAction states which operator requests an action, and why.
type AdminAction = repository.AdminAction

// A Loss describes consecutive events that the store has lost, at the front of a cabinet.
type Loss = repository.Loss

// An Inspection is the stored state of a queue.
type Inspection = repository.Inspection

// A Record is the record of an operator's action.
type Record = repository.Record

// An Operator acts on queues in place of their actors. Every action is logged, and is recorded together with its
// change. If events become available, the Operator wakes Listeners. It is safe for concurrent use.
type Operator struct {
	hub *Hub
	ops repository.Admin
	log *slog.Logger
}

// NewOperator returns an Operator for the queues of h. If log is nil, it logs nothing.
func NewOperator(h *Hub, ops repository.Admin, log *slog.Logger) *Operator {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Operator{h, ops, log}
}

// Inspect returns the stored state of a queue.
func (o *Operator) Inspect(ctx context.Context, actor domain.ActorID) (repository.Inspection, error) {
	return o.ops.Inspect(ctx, actor)
}

// Records returns up to limit records of operators' actions on a queue, newest first.
func (o *Operator) Records(ctx context.Context, actor domain.ActorID, limit int) ([]repository.Record, error) {
	return o.ops.Records(ctx, actor, limit)
}

// Release closes an open bundle and returns its events to the front of the queue. It fails with NotFound if the bundle
// is not open.
func (o *Operator) Release(ctx context.Context, actor domain.ActorID, id domain.BundleID, by AdminAction) error {
	return o.runAction(ctx, "release", actor, by, func() error { return o.ops.Release(ctx, actor, id, by) }, slog.String("bundle_id", id.String()))
}

// Skip closes an open bundle without delivering its events again. It fails with NotFound if the bundle is not open.
func (o *Operator) Skip(ctx context.Context, actor domain.ActorID, id domain.BundleID, by AdminAction) error {
	return o.runAction(ctx, "skip", actor, by, func() error { return o.ops.Skip(ctx, actor, id, by) }, slog.String("bundle_id", id.String()))
}

// Replay reopens the last closed bundle of a group, and returns it. It fails with Conflict if the group has an open
// bundle, and with NotFound if no closed bundle is retained.
func (o *Operator) Replay(ctx context.Context, actor domain.ActorID, group domain.Group, by AdminAction) (bundle domain.Bundle, err error) {
	return bundle, o.runAction(ctx, "replay", actor, by, func() error {
		bundle, err = o.ops.Replay(ctx, actor, group, by)
		return err
	}, slog.String("group", group.String()))
}

// Freeze makes the actor's Peek and Dequeue fail with ErrFrozen until Thaw.
func (o *Operator) Freeze(ctx context.Context, actor domain.ActorID, by AdminAction) error {
	return o.runAction(ctx, "freeze", actor, by, func() error { return o.ops.Freeze(ctx, actor, by) })
}

// Thaw ends a Freeze.
func (o *Operator) Thaw(ctx context.Context, actor domain.ActorID, by AdminAction) error {
	return o.runAction(ctx, "thaw", actor, by, func() error { return o.ops.Thaw(ctx, actor, by) })
}

// Abandon skips the lost events at the front of a cabinet, and returns the Loss. It fails with Conflict if the first
// event can be read or the group has an open bundle, and with NotFound if nothing waits in the cabinet.
func (o *Operator) Abandon(ctx context.Context, cabinet domain.CabinetKey, by AdminAction) (loss Loss, err error) {
	return loss, o.runAction(ctx, "abandon", cabinet.Recipient, by, func() error {
		loss, err = o.ops.Abandon(ctx, cabinet, by)
		return err
	}, slog.String("origin", cabinet.Origin.String()), slog.String("content_type", cabinet.ContentType.String()))
}

// runAction executes an action, and then wakes the Listeners of the actor.
func (o *Operator) runAction(ctx context.Context, what string, actor domain.ActorID, by AdminAction, do func() error, attrs ...slog.Attr) error {
	if err := o.carryOut(ctx, what, actor, by, do, attrs...); err != nil {
		return err
	}
	o.hub.wakeActor(actor)
	return nil
}

// carryOut checks the AdminAction, calls do, and logs the result.
func (o *Operator) carryOut(ctx context.Context, what string, actor domain.ActorID, by AdminAction, do func() error, attrs ...slog.Attr) error {
	if err := by.Check(); err != nil {
		return err
	}
	err := do()
	attrs = append(attrs, slog.String("what", what), slog.String("actor", actor.String()), slog.String("who", by.Who), slog.String("why", by.Why))
	if err != nil {
		o.log.LogAttrs(ctx, slog.LevelWarn, "operator's order failed", append(attrs, slog.String("error", err.Error()))...)
		return err
	}
	o.log.LogAttrs(ctx, slog.LevelInfo, "operator's order carried out", attrs...)
	return nil
}
