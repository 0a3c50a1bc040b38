package hubclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/domain"
)

const watchesPath = "/v1/_notifications/watch"

// A Watch is the hub's description of a watch.
type Watch struct {
	ID        string `json:"id"` // ID is set only in lists
	Resource  string `json:"resource"`
	Callback  string `json:"callback"`
	Created   int64  `json:"created"` // POSIX seconds
	Triggered int64  `json:"count_triggered"`
	Delivered int64  `json:"count_delivered"`
	Errored   int64  `json:"count_errored"`
}

// CreatedAt returns the time at which the watch was created.
func (w *Watch) CreatedAt() time.Time { return time.Unix(w.Created, 0).UTC() }

// CreateWatch makes an actor watch a resource, which is a URI, and returns the
// id of the watch. If mayBeAbsent is true, the resource need not exist.
func (c *Client) CreateWatch(ctx context.Context, actor, resource, callback string, mayBeAbsent bool) (string, error) {
	body, err := json.Marshal(map[string]string{"resource": resource, "callback": callback})
	if err != nil {
		return "", err
	}
	target := watchesPath
	if mayBeAbsent {
		target += "?absent=allow"
	}
	req, err := c.Request(ctx, http.MethodPost, target, actor, body)
	if err != nil {
		return "", err
	}
	resp, err := c.HTTP().Do(req)
	if err != nil {
		return "", c.Unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther { // the hub answers with a redirect to the new watch
		return "", hubclient.ReadProblem(resp)
	}
	return path.Base(resp.Header.Get("Location")), nil
}

// Watches returns up to count watches of an actor, skipping the first offset
// watches.
func (c *Client) Watches(ctx context.Context, actor string, offset, count int) ([]*Watch, error) {
	var list struct {
		Items []*Watch `json:"items"`
	}
	parameters := url.Values{"offset": {fmt.Sprint(offset)}, "count": {fmt.Sprint(count)}}
	err := c.watchCall(ctx, http.MethodGet, "?"+parameters.Encode(), actor, &list)
	return list.Items, err
}

// Watch returns a watch of an actor.
func (c *Client) Watch(ctx context.Context, actor string, id domain.WatchID) (*Watch, error) {
	var w Watch
	err := c.watchCall(ctx, http.MethodGet, "/"+id.String(), actor, &w)
	w.ID = id.String()
	return &w, err
}

// WatchAttempts lists the last calls of a watch's callback, newest first.
type WatchAttempts struct {
	Next     *time.Time     `json:"next_attempt,omitempty"`
	Attempts []WatchAttempt `json:"attempts"`
}

// A WatchAttempt is the result of one call of a watch's callback.
type WatchAttempt struct {
	Number   int       `json:"number"`
	Began    time.Time `json:"began"`
	Duration float64   `json:"duration_ms"`
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// WatchAttempts returns the last calls of the callback of an actor's watch.
func (c *Client) WatchAttempts(ctx context.Context, actor string, id domain.WatchID) (*WatchAttempts, error) {
	var a WatchAttempts
	err := c.watchCall(ctx, http.MethodGet, "/"+id.String()+"/attempts", actor, &a)
	return &a, err
}

// DeleteWatch deletes a watch of an actor.
func (c *Client) DeleteWatch(ctx context.Context, actor string, id domain.WatchID) error {
	return c.watchCall(ctx, http.MethodDelete, "/"+id.String(), actor, nil)
}

// watchCall sends a request and decodes the response into v, unless v is nil.
func (c *Client) watchCall(ctx context.Context, method, below, actor string, v any) error {
	resp, err := c.Do(ctx, method, watchesPath+below, actor, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if v == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return c.Unreachable(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}

// String describes the call in one line.
func (a WatchAttempt) String() string {
	result := a.Error
	if result == "" {
		result = fmt.Sprint(a.Status)
	}
	return fmt.Sprintf("%s, attempt %d, %.0f ms: %s", a.Began.Format(time.RFC3339), a.Number, a.Duration, result)
}
