package hubclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Peek returns the id and the body of the next bundle of an actor at path. The id is "" if
// there is no data.
func (c *Client) Peek(ctx context.Context, actor, path string) (id string, body []byte, err error) {
	resp, err := c.Do(ctx, http.MethodGet, path, actor, nil)
	if err != nil {
		return "", nil, fmt.Errorf("peek of %s: %w", actor, err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		return "", nil, fmt.Errorf("peek of %s: the body broke off: %w", actor, err)
	}
	return resp.Header.Get("MessageId"), body, nil
}

// Dequeue confirms a bundle. It returns false if the bundle was not open for the actor.
func (c *Client) Dequeue(ctx context.Context, actor, id string) (bool, error) {
	resp, err := c.Do(ctx, http.MethodDelete, "/v1/dequeue/"+id, actor, nil)
	if refused, ok := errors.AsType[*Problem](err); ok && refused.Status == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("dequeue of bundle %s of %s: %w", id, actor, err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return true, errors.Join(err, resp.Body.Close())
}
