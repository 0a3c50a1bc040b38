package webhook

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// A WatchCall notifies a watch of a change.
type WatchCall struct {
	ID          string // of DeliveryID
	CallbackURL string
	Body        []byte // JSON
}

// CallWatch calls the receiver of a watch once, as Send does any other, but follows redirects. All of
// them are within the time of the call.
func (c *Client) CallWatch(ctx context.Context, call *WatchCall) (Result, error) {
	return c.send(ctx, maxRedirects, func(ctx context.Context, now time.Time) (*http.Request, error) {
		if err := c.checkCall(call.CallbackURL); err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.CallbackURL, bytes.NewReader(call.Body))
		if err != nil {
			return nil, &prepareError{"the URL is not valid"}
		}
		req.Header.Set("Content-Type", "application/json")
		setOwnHeaders(req.Header, now)
		req.Header.Set("Webhook-Id", call.ID)
		return req, nil
	})
}
