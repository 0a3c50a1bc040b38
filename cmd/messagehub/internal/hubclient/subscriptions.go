package hubclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Subscription is a subscription returned by a hub. It lacks the secret and
// the values of headers.
type Subscription struct {
	domain.Subscription
	HeaderNames []string

	ID      domain.SubscriptionID
	Signed  bool // Signed means that the subscription has a secret
	Paused  bool
	Created time.Time

	Delivery *Delivery // state of the calls; nil if the response does not contain it

	// Unknown lists JSON members that this version does not know. Replacing the
	// subscription would remove them.
	Unknown []string

	Text json.RawMessage // Text is the JSON response of the hub
}

// A Delivery is the state of a subscription's calls.
type Delivery struct {
	State     string    `json:"state"`
	Until     time.Time `json:"until"` // earliest time of the next call; zero if the next call need not wait
	Failures  int       `json:"failures"`
	Waiting   int64     `json:"waiting"`
	Delivered int64     `json:"delivered"`
	Filtered  int64     `json:"filtered"`
	Dead      int64     `json:"dead"`
	Expired   int64     `json:"expired"`

	Warnings []DeliveryWarning `json:"warnings"`
}

// A DeliveryWarning says why deliveries will fail unless the subscription's
// owner acts.
type DeliveryWarning struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// A subscriptionJSON contains the JSON members that drafts and stored
// subscriptions share.
type subscriptionJSON struct {
	Topic            string                    `json:"topic"`
	CallbackURL      string                    `json:"callback_url"`
	Method           string                    `json:"method"`
	Encoding         string                    `json:"encoding"`
	FormFields       map[string]string         `json:"form_fields,omitempty"`
	PayloadFormField string                    `json:"payload_form_field"`
	HMACKeyID        string                    `json:"hmac_key_id,omitempty"`
	Query            string                    `json:"jmespath_query,omitempty"`
	Attachments      map[string]attachmentJSON `json:"attachments,omitempty"`
	MaxRate          float64                   `json:"max_rate,omitempty"`
	MaxConcurrency   int                       `json:"max_concurrency,omitempty"`
	Ordered          bool                      `json:"ordered,omitempty"`
}

// A storedJSON is the JSON of a stored subscription. Its member delivery_mode
// is called delivery in a draft.
type storedJSON struct {
	subscriptionJSON
	UUID         string     `json:"uuid"`
	Owner        string     `json:"owner"`
	HeaderNames  []string   `json:"header_names"`
	DeliveryMode string     `json:"delivery_mode"`
	Signed       bool       `json:"signed"`
	Paused       bool       `json:"paused"`
	Created      *time.Time `json:"created"`
	Delivery     *Delivery  `json:"delivery"`
}

// A draftJSON is the request body that creates or replaces a subscription.
type draftJSON struct {
	subscriptionJSON
	HMACSecretKey *string            `json:"hmac_secret_key,omitempty"`
	Headers       *map[string]string `json:"headers,omitempty"`
	Delivery      string             `json:"delivery,omitempty"`
}

// syncDelivery is the delivery mode in which the sender of an event waits until
// the receiver was called. The default mode is "async".
const syncDelivery = "sync"

type attachmentJSON struct {
	Type       string `json:"type"`
	Expression string `json:"expression"`
}

// knownMembers lists the members of a subscription that this version knows.
var knownMembers = []string{
	"uuid", "owner", "topic", "callback_url", "method", "encoding", "form_fields", "payload_form_field", "hmac_key_id",
	"jmespath_query", "attachments", "signed", "paused", "created", "delivery", "previous_secret_until", "header_names", "delivery_mode",
	"max_rate", "max_concurrency", "ordered",
}

// UnmarshalJSON decodes a subscription from the HTTP API.
func (s *Subscription) UnmarshalJSON(text []byte) error {
	var d storedJSON
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	id, err := domain.ParseSubscriptionID(d.UUID)
	if err != nil {
		return err
	}
	owner, err := domain.ParseActorID(d.Owner)
	if err != nil {
		return err
	}
	*s = Subscription{
		ID: id, HeaderNames: d.HeaderNames, Signed: d.Signed, Paused: d.Paused, Text: slices.Clone(text),
		Subscription: domain.Subscription{
			Owner: owner, Topic: d.Topic, CallbackURL: d.CallbackURL, Method: d.Method, Encoding: d.Encoding, FormFields: d.FormFields,
			PayloadFormField: d.PayloadFormField, HMACKeyID: d.HMACKeyID, Filter: d.Query,
			IsSync: d.DeliveryMode == syncDelivery, MaxRate: d.MaxRate, MaxConcurrency: d.MaxConcurrency,
			IsOrdered: d.Ordered,
		},
	}
	s.Delivery = d.Delivery
	if d.Created != nil {
		s.Created = *d.Created
	}
	for name, a := range d.Attachments {
		if s.Attachments == nil {
			s.Attachments = make(map[string]string)
		}
		s.Attachments[name] = a.Expression
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(knownMembers, name) {
			s.Unknown = append(s.Unknown, name)
		}
	}
	return nil
}

// Subscriptions returns all subscriptions of an actor.
func (c *Client) Subscriptions(ctx context.Context, actor string) ([]*Subscription, error) {
	var all struct {
		Subscriptions []*Subscription `json:"subscriptions"`
	}
	_, err := c.subscriptionCall(ctx, http.MethodGet, "", actor, nil, &all)
	return all.Subscriptions, err
}

// Subscription returns a subscription of an actor.
func (c *Client) Subscription(ctx context.Context, actor string, id domain.SubscriptionID) (*Subscription, error) {
	var s Subscription
	_, err := c.subscriptionCall(ctx, http.MethodGet, "/"+id.String(), actor, nil, &s)
	return &s, err
}

// Hidden contains the parts of a subscription that the hub never returns.
type Hidden struct {
	Secret  *string           // new secret; nil retains the stored secret, and "" removes it
	Headers map[string]string // new headers; nil retains the stored headers, and an empty map removes them
}

// PutSubscription creates or replaces the subscription id of an actor. created
// is true if it did not exist. The call may be repeated.
func (c *Client) PutSubscription(ctx context.Context, actor string, id domain.SubscriptionID, d *domain.Subscription, h Hidden) (s *Subscription, created bool, err error) {
	draft := draftJSON{
		subscriptionJSON: subscriptionJSON{
			Topic: d.Topic, CallbackURL: d.CallbackURL, Method: d.Method, Encoding: d.Encoding, FormFields: d.FormFields,
			PayloadFormField: d.PayloadFormField, HMACKeyID: d.HMACKeyID, Query: d.Filter, MaxRate: d.MaxRate, MaxConcurrency: d.MaxConcurrency,
			Ordered: d.IsOrdered,
		},
		HMACSecretKey: h.Secret,
	}
	if d.IsSync {
		draft.Delivery = syncDelivery
	}
	if h.Headers != nil {
		draft.Headers = &h.Headers
	}
	for name, expression := range d.Attachments {
		if draft.Attachments == nil {
			draft.Attachments = make(map[string]attachmentJSON)
		}
		draft.Attachments[name] = attachmentJSON{"jmespath", expression}
	}
	body, err := json.Marshal(draft)
	if err != nil {
		return nil, false, err
	}
	s = new(Subscription)
	status, err := c.subscriptionCall(ctx, http.MethodPut, "/"+id.String(), actor, body, s)
	return s, status == http.StatusCreated, err
}

// RotateSubscription replaces the secret of an actor's subscription. The
// previous secret remains valid for some time. The call may be repeated.
func (c *Client) RotateSubscription(ctx context.Context, actor string, id domain.SubscriptionID, secret string) (*Subscription, error) {
	body, err := json.Marshal(map[string]string{"hmac_secret_key": secret})
	if err != nil {
		return nil, err
	}
	var s Subscription
	_, err = c.subscriptionCall(ctx, http.MethodPost, "/"+id.String()+"/rotate", actor, body, &s)
	return &s, err
}

// DeleteSubscription deletes a subscription of an actor.
func (c *Client) DeleteSubscription(ctx context.Context, actor string, id domain.SubscriptionID) error {
	_, err := c.subscriptionCall(ctx, http.MethodDelete, "/"+id.String(), actor, nil, nil)
	return err
}

// SetPaused pauses or resumes a subscription of an actor.
func (c *Client) SetPaused(ctx context.Context, actor string, id domain.SubscriptionID, isPaused bool) (*Subscription, error) {
	action := "/resume"
	if isPaused {
		action = "/pause"
	}
	var s Subscription
	_, err := c.subscriptionCall(ctx, http.MethodPost, "/"+id.String()+action, actor, nil, &s)
	return &s, err
}

// maxSubscriptions is the maximum size, in bytes, of a response about
// subscriptions.
const maxSubscriptions = 32 << 20

// subscriptionCall sends a request and decodes the response into v, unless v is nil.
func (c *Client) subscriptionCall(ctx context.Context, method, path, actor string, body []byte, v any) (status int, err error) {
	resp, err := c.Do(ctx, method, "/v1/subscriptions"+path, actor, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxSubscriptions))
	if err != nil {
		return 0, c.Unreachable(err)
	}
	if v == nil {
		return resp.StatusCode, nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return 0, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return resp.StatusCode, nil
}
