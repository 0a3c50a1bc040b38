package brokerclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// A Bundle contains messages that a consumer has fetched.
type Bundle struct {
	ID       string          `json:"bundle"`
	Messages []StoredMessage `json:"messages"`
}

// Peek returns a bundle with up to limit messages that wait for a consumer. If limit is 0, the hub
// chooses the limit. Until the bundle is dequeued, Peek returns it again, and the hub does not call
// the consumer with its messages. Messages of calls in progress are excluded. Peek returns nil if
// no message waits. It requires the token of the consumer or of the operators.
func (c *Client) Peek(ctx context.Context, channel, consumer string, limit int) (*Bundle, error) {
	r := &apiCall{method: http.MethodGet, path: []string{"channel", channel, "consumer", consumer, "peek"}, header: c.asConsumer()}
	if limit != 0 {
		r.query = url.Values{"size": {strconv.Itoa(limit)}}
	}
	a, err := c.sendRepeatedly(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.status == http.StatusNoContent {
		return nil, nil //nolint:nilnil // nothing waits
	}
	b := new(Bundle)
	return b, a.decodeBody(b)
}

// Dequeue confirms a bundle, whose messages are never delivered again. The caller may repeat it. It
// requires the token of the consumer or of the operators.
func (c *Client) Dequeue(ctx context.Context, channel, consumer, bundle string) error {
	_, err := c.sendRepeatedly(ctx, &apiCall{
		method: http.MethodDelete, path: []string{"channel", channel, "consumer", consumer, "dequeue", bundle}, header: c.asConsumer(),
	})
	return err
}
