package hubclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// A NotOpenError reports that a bundle cannot be dequeued because it is not open for the actor.
type NotOpenError struct {
	BundleID string
	// MayBeDequeued reports whether an earlier attempt of the same call may have dequeued the
	// bundle.
	MayBeDequeued bool
	Problem       *Problem
}

// Error returns the reason in one line.
func (e *NotOpenError) Error() string {
	if e.MayBeDequeued {
		return fmt.Sprintf("hubclient: bundle %s is not open; an earlier attempt, whose answer was lost, may have dequeued it", e.BundleID)
	}
	return fmt.Sprintf("hubclient: bundle %s is not open: %v", e.BundleID, e.Problem)
}

// Unwrap returns the problem that the hub reported.
func (e *NotOpenError) Unwrap() error { return e.Problem }

// Dequeue confirms that an actor has stored a bundle, whose events are never delivered again. It
// fails with a [*NotOpenError] if the bundle is not open: it was never open, another process of the
// actor has dequeued it, or an earlier attempt of this call has. [Bundle.Dequeue] can exclude the
// first cause, because a fetched bundle was open.
func (c *Client) Dequeue(ctx context.Context, actor, id string) error {
	return c.dequeueOnce(ctx, actor, id, new(bool))
}

// dequeueOnce sends the request, and repeats it after temporary failures. If the response to an
// attempt was lost, it sets *mayBeDequeued, because that attempt may have dequeued the bundle.
func (c *Client) dequeueOnce(ctx context.Context, actor, id string, mayBeDequeued *bool) error {
	return c.repeatUntilDone(ctx, c.opts.Budget, func() error {
		_, err := c.fetchResponse(ctx, http.MethodDelete, "/v1/dequeue/"+url.PathEscape(id), actor, nil)
		if p, ok := errors.AsType[*Problem](err); ok && p.isGone() {
			return &NotOpenError{id, *mayBeDequeued, p}
		}
		*mayBeDequeued = *mayBeDequeued || err != nil && isUncertain(err)
		return err
	})
}

// Dequeue confirms that the actor has stored the bundle. It may be called again after an error. If
// the bundle is no longer open, and an earlier attempt may have reached the hub, Dequeue returns
// nil. It fails with a [*NotOpenError] if another process of the actor has dequeued the bundle, or
// an operator has closed it.
func (b *Bundle) Dequeue(ctx context.Context) error {
	err := b.client.dequeueOnce(ctx, b.actor, b.ID, &b.mayBeDequeued)
	if e, ok := errors.AsType[*NotOpenError](err); ok && e.MayBeDequeued {
		return nil
	}
	return err
}
