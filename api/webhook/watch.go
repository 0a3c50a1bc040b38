package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A WatchCall tells the receiver of a watch that a resource has changed.
type WatchCall struct {
	ID          string // id of the call, from DeliveryID
	Resource    string // URI of the resource
	CallbackURL string
	Event       domain.ChangeEvent
	Changed     time.Time
	Attempts    int // number of failed attempts before this call
}

// encodeBody returns the body of a call. It contains only the members that the specification
// defines.
func (c *WatchCall) encodeBody() []byte {
	body, err := json.Marshal(struct {
		Resource string             `json:"resource"`
		Callback string             `json:"callback"`
		Event    domain.ChangeEvent `json:"event"`
		Time     int64              `json:"timestamp"` // POSIX seconds
		Attempts int                `json:"delivery_attempts"`
	}{c.Resource, c.CallbackURL, c.Event, c.Changed.Unix(), c.Attempts})
	if err != nil {
		panic(err) // text and numbers can always be encoded
	}
	return body
}

// CallWatch calls the receiver of a watch once. Unlike Send, it follows redirects within the time
// limit of the call, and counts any status other than 200 as a failure.
func (c *Client) CallWatch(ctx context.Context, call *WatchCall) (Result, error) {
	r, err := c.sendCall(ctx, maxRedirects, func(ctx context.Context, now time.Time) (*http.Request, error) {
		if err := c.checkCall(call.CallbackURL); err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.CallbackURL, bytes.NewReader(call.encodeBody()))
		if err != nil {
			return nil, &prepareError{"the URL is not valid"}
		}
		req.Header.Set("Content-Type", "application/json")
		setOwnHeaders(req.Header, now)
		req.Header.Set("Webhook-Id", call.ID)
		return req, nil
	})
	if a := &r.Answer; err == nil && a.Error == "" && a.Status != http.StatusOK {
		a.Error = fmt.Sprintf("the receiver answered %d; a watch has to answer 200", a.Status)
	}
	return r, err
}
