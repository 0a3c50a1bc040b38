package hubclient

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/messagehub/messagehub/api/hubclient"
)

// Peek returns the id and the body of an actor's open bundle, opening one if
// necessary. The id is "" if no data is available.
func (c *Client) Peek(ctx context.Context, actor string, opts PeekOptions) (id string, body []byte, err error) {
	b, err := c.As(actor).Peek(ctx, actor, opts)
	if errors.Is(err, hubclient.ErrNoData) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("peek of %s: %w", actor, c.ExplainError(err))
	}
	defer func() { _ = b.Close() }() // Close never fails
	body, err = io.ReadAll(b)
	if err != nil {
		return "", nil, fmt.Errorf("peek of %s: %w", actor, err)
	}
	return b.ID, body, nil
}

// Dequeue confirms a bundle. It returns false if the actor has no open bundle
// with this id.
func (c *Client) Dequeue(ctx context.Context, actor, id string) (bool, error) {
	err := c.As(actor).Dequeue(ctx, actor, id)
	if _, ok := errors.AsType[*hubclient.NotOpenError](err); ok {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("dequeue of bundle %s of %s: %w", id, actor, c.ExplainError(err))
	}
	return true, nil
}
