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

// A MessageDelivery is the hub's description of the delivery of one message.
type MessageDelivery struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Inferred  bool      `json:"inferred"`
	Event     *EventKey `json:"event"`
	Published time.Time `json:"published"`
	Attempts  int       `json:"attempts"`
	Due       time.Time `json:"due"`
	Reason    string    `json:"reason"`
	Last      *Attempt  `json:"last_attempt"` // newest attempt; set only in lists
	History   []Attempt `json:"history"`
}

// An EventKey identifies a published event.
type EventKey struct{ ID, Type, Source string }

// An Attempt is the result of one call of a receiver.
type Attempt struct {
	Number   int       `json:"number"`
	Began    time.Time `json:"began"`
	Duration float64   `json:"duration_ms"`
	Status   int       `json:"status"` // status of the receiver's response; 0 without a response
	Error    string    `json:"error"`
}

// An Explanation explains the state of a delivery.
type Explanation struct {
	Delivery  MessageDelivery `json:"delivery"`
	Cause     string          `json:"cause"`
	Sentences []string        `json:"sentences"`
	Actions   []struct{ Method, Path, Text string }
}

// A TestResult is the outcome of a test call of a receiver.
type TestResult struct {
	Success  bool    `json:"success"`
	Status   int     `json:"status"` // status of the receiver's response; 0 without a response
	Duration float64 `json:"duration_ms"`
	Error    string  `json:"error"`
	Answer   string  `json:"answer"` // first bytes of the response's body
}

// maxDeliveryPage is the maximum number of deliveries in one response.
const maxDeliveryPage = 100

// Deliveries returns up to limit deliveries of a subscription, each as the
// hub's JSON. If state is not "", only deliveries in that state are listed. The
// request uses the actor's token or, if actor is "", the operator's token.
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

// Delivery returns a delivery, and the JSON response.
func (c *Client) Delivery(ctx context.Context, actor string, id domain.DeliveryID) (*MessageDelivery, []byte, error) {
	var d MessageDelivery
	text, err := c.deliveryCall(ctx, http.MethodGet, "/v1/deliveries/"+id.String(), actor, &d)
	return &d, text, err
}

// Explain returns an explanation of a delivery's state, and the JSON response.
func (c *Client) Explain(ctx context.Context, actor string, id domain.DeliveryID) (*Explanation, []byte, error) {
	var x Explanation
	text, err := c.deliveryCall(ctx, http.MethodGet, "/v1/deliveries/"+id.String()+"/explain", actor, &x)
	return &x, text, err
}

// TestSubscription makes the hub call a subscription's receiver once. It
// returns the result, and the JSON response.
func (c *Client) TestSubscription(ctx context.Context, actor string, id domain.SubscriptionID) (*TestResult, []byte, error) {
	var r TestResult
	text, err := c.deliveryCall(ctx, http.MethodPost, "/v1/subscriptions/"+id.String()+"/test", actor, &r)
	return &r, text, err
}

// deliveryCall sends a request without a body, decodes the response into v, and
// returns the response's JSON.
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
