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

// A Subscription is a subscription as a hub shows it: without its secret and
// the values of its headers.
type Subscription struct {
	domain.Subscription
	HeaderNames []string

	ID      domain.SubscriptionID
	Signed  bool // the subscription has a secret
	Paused  bool
	Created time.Time

	Delivery *Delivery // state of the calls; nil: not in the response

	// Unknown lists the members that this version does not know. A replacement of
	// the subscription would remove them.
	Unknown []string

	Text json.RawMessage // JSON of the hub
}

// A Delivery is the state of the calls of a subscription.
type Delivery struct {
	State     string    `json:"state"`
	Until     time.Time `json:"until"` // earliest time of the next call; zero: no limit
	Failures  int       `json:"failures"`
	Waiting   int64     `json:"waiting"`
	Delivered int64     `json:"delivered"`
	Filtered  int64     `json:"filtered"`
	Dead      int64     `json:"dead"`
	Expired   int64     `json:"expired"`

	Warnings []DeliveryWarning `json:"warnings"`
}

// A DeliveryWarning warns the owner that deliveries will fail unless the owner
// acts.
type DeliveryWarning struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// subscriptionJSON has the members that drafts and stored subscriptions share.
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

// A storedJSON is a stored subscription. It has the mode of delivery in the
// member delivery_mode, whereas a draft has it in delivery.
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

// A draftJSON is the body of a request that stores a subscription.
type draftJSON struct {
	subscriptionJSON
	HMACSecretKey *string            `json:"hmac_secret_key,omitempty"`
	Headers       *map[string]string `json:"headers,omitempty"`
	Delivery      string             `json:"delivery,omitempty"`
}

// syncDelivery is the delivery mode in which the sender of an event waits for the
// call. The default mode is "async".
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

// UnmarshalJSON decodes a subscription of the HTTP API.
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

// Subscriptions returns the subscriptions of an actor.
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

// Hidden has the members of a subscription that the hub does not return.
type Hidden struct {
	Secret  *string           // nil keeps the stored secret; "" removes it
	Headers map[string]string // nil keeps the stored headers; an empty map removes them
}

// PutSubscription creates the subscription id of an actor, or replaces it; created
// reports which. The call may be repeated.
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

// RotateSubscription replaces the secret of an actor's subscription. The previous
// secret remains valid for a while. The call may be repeated.
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

// maxSubscriptions is the maximum size of a response, in bytes.
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
