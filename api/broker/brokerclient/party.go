package brokerclient

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// A Ref identifies a producer, a channel, or a consumer of a channel.
type Ref struct{ path []string }

// Producer returns the Ref of a producer.
func Producer(id string) Ref { return Ref{[]string{"producer", id}} }

// Channel returns the Ref of a channel.
func Channel(id string) Ref { return Ref{[]string{"channel", id}} }

// Consumer returns the Ref of a consumer of a channel.
func Consumer(channel, id string) Ref { return Ref{[]string{"channel", channel, "consumer", id}} }

// A PartyList identifies a list of producers, channels or consumers.
type PartyList struct {
	path   []string
	member string
}

// The lists of producers and of channels.
var (
	Producers = PartyList{[]string{"producers"}, "producers"}
	Channels  = PartyList{[]string{"channels"}, "channels"}
)

// Consumers returns the list of the consumers of a channel.
func Consumers(channel string) PartyList {
	return PartyList{[]string{"channel", channel, "consumers"}, "consumers"}
}

// A Party is a producer, a channel or a consumer, without its token.
type Party struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Channel     string    `json:"channel,omitempty"`     // channel of the consumer; set only for a consumer
	CallbackURL string    `json:"callbackUrl,omitempty"` // URL that the hub calls; set only for a consumer
	Created     time.Time `json:"created"`
	Changed     time.Time `json:"changed"`

	ETag string `json:"-"` // version of the party; "" if the party is in a list
}

// A Draft is the desired state of a party.
type Draft struct {
	Name        string // name of the party; "" leaves it unchanged, and a new party then gets its id as its name
	Token       string // token of the party; "" leaves it unchanged; required for a new party
	CallbackURL string // URL of a consumer; required for a new consumer

	IfMatch           string    // required ETag of the current party; "" allows any
	IfUnmodifiedSince time.Time // the party must not have changed since this time; the zero time allows any change
}

// Put creates or changes a party, and reports whether it was created. The caller may repeat it: if
// the party equals the draft, nothing changes. It requires the token of the operators. A *Problem
// with status 412 means that the party does not meet the conditions of the draft.
func (c *Client) Put(ctx context.Context, ref Ref, d *Draft) (p *Party, created bool, err error) {
	form := make(url.Values)
	for name, value := range map[string]string{"name": d.Name, "token": d.Token, "callbackUrl": d.CallbackURL} {
		if value != "" {
			form.Set(name, value)
		}
	}
	h := c.asAdmin()
	h.Set("Content-Type", "application/x-www-form-urlencoded")
	if d.IfMatch != "" {
		h.Set("If-Match", d.IfMatch)
	}
	if !d.IfUnmodifiedSince.IsZero() {
		h.Set("If-Unmodified-Since", d.IfUnmodifiedSince.UTC().Format(http.TimeFormat))
	}
	return c.fetchParty(ctx, &apiCall{method: http.MethodPut, path: ref.path, header: h, body: []byte(form.Encode())})
}

// Get returns a party. It requires the token of the operators; for a channel and its consumers, the
// token of the channel suffices.
func (c *Client) Get(ctx context.Context, ref Ref) (*Party, error) {
	p, _, err := c.fetchParty(ctx, &apiCall{method: http.MethodGet, path: ref.path, header: c.asReader()})
	return p, err
}

func (c *Client) fetchParty(ctx context.Context, r *apiCall) (*Party, bool, error) {
	a, err := c.sendRepeatedly(ctx, r)
	if err != nil {
		return nil, false, err
	}
	p := new(Party)
	if err := a.decodeBody(p); err != nil {
		return nil, false, err
	}
	p.ETag = a.header.Get("ETag")
	return p, a.status == http.StatusCreated, nil
}

// List returns the parties of a list in the order of their ids. It requires the same tokens as
// [Client.Get].
func (c *Client) List(ctx context.Context, l PartyList) iter.Seq2[*Party, error] {
	return listPages[Party](ctx, c, apiCall{method: http.MethodGet, path: l.path, header: c.asReader()}, l.member)
}
