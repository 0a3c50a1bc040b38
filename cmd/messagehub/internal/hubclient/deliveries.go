package hubclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A MessageDelivery is the delivery of one message, as a hub shows it.
type MessageDelivery struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Inferred  bool      `json:"inferred"`
	Event     *EventKey `json:"event"`
	Published time.Time `json:"published"`
	Attempts  int       `json:"attempts"`
	Due       time.Time `json:"due"`
	Reason    string    `json:"reason"`
	Last      *Attempt  `json:"last_attempt"` // newest attempt; set only in a list
	History   []Attempt `json:"history"`
}

// An EventKey identifies a published event.
type EventKey struct{ ID, Type, Source string }

// An Attempt is the stored result of one call of a delivery.
type Attempt struct {
	Number   int       `json:"number"`
	Began    time.Time `json:"began"`
	Duration float64   `json:"duration_ms"`
	Status   int       `json:"status"` // status of the receiver's answer; 0: no answer
	Error    string    `json:"error"`
}

// An Explanation explains the state of a delivery.
type Explanation struct {
	Delivery  MessageDelivery `json:"delivery"`
	Cause     string          `json:"cause"`
	Sentences []string        `json:"sentences"`
	Actions   []struct{ Method, Path, Text string }
}

// A TestResult is the outcome of a test call.
type TestResult struct {
	Success  bool    `json:"success"`
	Status   int     `json:"status"` // status of the receiver's answer; 0: no answer
	Duration float64 `json:"duration_ms"`
	Error    string  `json:"error"`
	Answer   string  `json:"answer"` // first bytes of the receiver's answer
}

// maxDeliveryPage is the maximum number of deliveries in a response of the hub.
const maxDeliveryPage = 100

// Deliveries returns up to limit deliveries of a subscription, each as the JSON of
// the hub. state "" means any state. The request is made for actor or, if actor is
// "", with the operator's token of the client.
func (c *Client) Deliveries(ctx context.Context, actor string, id domain.SubscriptionID, state string, limit int) (texts []json.RawMessage, hasMore bool, err error) {
	values := url.Values{"subscription": {id.String()}}
	if state != "" {
		values.Set("state", state)
	}
	for {
		values.Set("size", strconv.Itoa(min(limit-len(texts), maxDeliveryPage)))
		var page struct {
			Deliveries []json.RawMessage `json:"deliveries"`
			Next       string            `json:"next"`
		}
		if _, err := c.deliveryCall(ctx, http.MethodGet, "/v1/deliveries?"+values.Encode(), actor, &page); err != nil {
			return nil, false, err
		}
		texts = append(texts, page.Deliveries...)
		if page.Next == "" || len(texts) >= limit {
			return texts, page.Next != "", nil
		}
		values.Set("page", page.Next)
	}
}

// Delivery returns a delivery, and the hub's JSON response.
func (c *Client) Delivery(ctx context.Context, actor string, id domain.DeliveryID) (*MessageDelivery, []byte, error) {
	var d MessageDelivery
	text, err := c.deliveryCall(ctx, http.MethodGet, "/v1/deliveries/"+id.String(), actor, &d)
	return &d, text, err
}

// Explain returns an explanation of a delivery, and the hub's JSON response.
func (c *Client) Explain(ctx context.Context, actor string, id domain.DeliveryID) (*Explanation, []byte, error) {
	var x Explanation
	text, err := c.deliveryCall(ctx, http.MethodGet, "/v1/deliveries/"+id.String()+"/explain", actor, &x)
	return &x, text, err
}

// TestSubscription lets the hub call the receiver of a subscription once. It
// returns the result, and the hub's JSON response.
func (c *Client) TestSubscription(ctx context.Context, actor string, id domain.SubscriptionID) (*TestResult, []byte, error) {
	var r TestResult
	text, err := c.deliveryCall(ctx, http.MethodPost, "/v1/subscriptions/"+id.String()+"/test", actor, &r)
	return &r, text, err
}

// deliveryCall sends a request without a body, decodes the response into v, and
// returns its JSON.
func (c *Client) deliveryCall(ctx context.Context, method, path, actor string, v any) ([]byte, error) {
	resp, err := c.Do(ctx, method, path, actor, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxSubscriptions))
	if err != nil {
		return nil, c.Unreachable(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return text, nil
}
