package hubclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A ReplayDraft selects the deliveries that a replay repeats.
type ReplayDraft struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Filter string    `json:"filter,omitempty"`
	Of     string    `json:"of,omitempty"`   // "dead" or "all" deliveries
	Rate   int       `json:"rate,omitempty"` // deliveries per second
	DryRun bool      `json:"dryRun,omitempty"`
}

// A Replay describes the progress of a replay.
type Replay struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Matched   int64  `json:"matched"`
	Skipped   int64  `json:"skipped"`
	Seen      int64  `json:"seen"`
	Remaining int64  `json:"remaining"`
	Complete  bool   `json:"complete"` // set only by a dry run: all deliveries were counted

	Text json.RawMessage `json:"-"` // Text is the JSON response of the hub
}

// ReplayDelivery makes the hub repeat a delivery.
func (c *Client) ReplayDelivery(ctx context.Context, actor string, id domain.DeliveryID) error {
	resp, err := c.Do(ctx, http.MethodPost, "/v1/deliveries/"+id.String()+"/replay", actor, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// StartReplay starts a replay. In a dry run, it only counts the deliveries that
// a replay would repeat.
func (c *Client) StartReplay(ctx context.Context, actor string, id domain.SubscriptionID, d *ReplayDraft) (*Replay, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return c.replayCall(ctx, http.MethodPost, "/"+id.String()+"/replays", actor, body)
}

// Replay returns the progress of a replay.
func (c *Client) Replay(ctx context.Context, actor string, id domain.SubscriptionID, replay string) (*Replay, error) {
	return c.replayCall(ctx, http.MethodGet, "/"+id.String()+"/replays/"+url.PathEscape(replay), actor, nil)
}

// StopReplay stops a replay.
func (c *Client) StopReplay(ctx context.Context, actor string, id domain.SubscriptionID, replay string) error {
	_, err := c.subscriptionCall(ctx, http.MethodDelete, "/"+id.String()+"/replays/"+url.PathEscape(replay), actor, nil, nil)
	return err
}

func (c *Client) replayCall(ctx context.Context, method, path, actor string, body []byte) (*Replay, error) {
	resp, err := c.Do(ctx, method, "/v1/subscriptions"+path, actor, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxSubscriptions))
	if err != nil {
		return nil, c.Unreachable(err)
	}
	r := &Replay{Text: text}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return r, nil
}
