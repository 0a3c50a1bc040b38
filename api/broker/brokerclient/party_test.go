package brokerclient_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
)

func TestPut_SendsAFormAndReportsWhatWasCreated(t *testing.T) {
	const shown = `{"id":"shop","name":"Shop","channel":"prices","callbackUrl":"https://example.org/","created":"2026-03-01T10:00:00Z","changed":"2026-03-01T10:00:01Z"}`
	c, h := serve(t, brokerclient.Options{Credentials: allTokens}, respond(201, shown, "ETag", `"v1"`), respond(200, shown))
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	p, created, err := c.Put(t.Context(), brokerclient.Consumer("prices", "shop"), &brokerclient.Draft{
		Name: "Shop & Co", Token: "t&=", CallbackURL: "https://example.org/", IfMatch: `"v0"`, IfUnmodifiedSince: since,
	})
	require.NoError(t, err)
	require.True(t, created)
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	require.Equal(t, &brokerclient.Party{
		ID: "shop", Name: "Shop", Channel: "prices", CallbackURL: "https://example.org/", Created: at, Changed: at.Add(time.Second), ETag: `"v1"`,
	}, p)
	r := h.received()[0]
	require.Equal(t, "PUT /broker/channel/prices/consumer/shop", r.method+" "+r.target)
	form, err := url.ParseQuery(r.body)
	require.NoError(t, err)
	require.Equal(t, url.Values{"name": {"Shop & Co"}, "token": {"t&="}, "callbackUrl": {"https://example.org/"}}, form)
	require.Equal(t, "application/x-www-form-urlencoded", r.header.Get("Content-Type"))
	require.Equal(t, `"v0"`, r.header.Get("If-Match"))
	require.Equal(t, "Sun, 01 Mar 2026 11:00:00 GMT", r.header.Get("If-Unmodified-Since"))

	_, created, err = c.Put(t.Context(), brokerclient.Producer("shop"), &brokerclient.Draft{})
	require.NoError(t, err)
	require.False(t, created)
	r = h.received()[1]
	require.Equal(t, "PUT /broker/producer/shop", r.method+" "+r.target)
	require.Empty(t, r.body, "what is not given is kept")
	require.NotContains(t, r.header, "If-Match")
	require.NotContains(t, r.header, "If-Unmodified-Since")
}

func TestARef_IsRefusedUnlessItIsOneSegmentOfAPath(t *testing.T) {
	c, h := serve(t, brokerclient.Options{Credentials: allTokens}, respond(200, "{}"))
	for _, id := range []string{"", ".", ".."} {
		_, err := c.Get(t.Context(), brokerclient.Channel(id))
		require.ErrorContains(t, err, "want an id")
	}
	require.Empty(t, h.received())
	_, err := c.Message(t.Context(), "a b", "1/../2?x")
	require.NoError(t, err)
	require.Equal(t, "/broker/channel/a%20b/message/1%2F..%2F2%3Fx", h.received()[0].target)
}

// names returns the ids of all parties.
func names(t *testing.T, all iter.Seq2[*brokerclient.Party, error]) (ids []string) {
	t.Helper()
	for p, err := range all {
		require.NoError(t, err)
		ids = append(ids, p.ID)
	}
	return ids
}

func TestList_FollowsThePages(t *testing.T) {
	pages := []http.HandlerFunc{
		respond(200, `{"consumers":[{"id":"a"},{"id":"b"}],"next":"https://evil.example/elsewhere?first=c&size=2"}`),
		respond(200, `{"consumers":[],"next":"/broker/channel/prices/consumers?first=d&size=2"}`),
		respond(200, `{"consumers":[{"id":"d"}]}`),
	}
	c, h := serve(t, brokerclient.Options{Credentials: allTokens, PageSize: 2}, pages...)
	require.Equal(t, []string{"a", "b", "d"}, names(t, c.List(t.Context(), brokerclient.Consumers("prices"))))
	for i, want := range []string{"?size=2", "?first=c&size=2", "?first=d&size=2"} {
		require.Equal(t, "/broker/channel/prices/consumers"+want, h.received()[i].target)
	}

	c, h = serve(t, brokerclient.Options{}, pages...)
	for range c.List(t.Context(), brokerclient.Consumers("prices")) {
		break
	}
	require.Len(t, h.received(), 1, "what is not wanted is not fetched")
}

func TestList_EndsWithTheFirstFailure(t *testing.T) {
	for _, tc := range []struct {
		second http.HandlerFunc
		want   string
	}{
		{respond(403, `{"title":"No"}`), "No (403)"},
		{respond(200, `[]`), "the answer of the hub cannot be read"},
		{respond(200, `{"producers":{}}`), "the answer of the hub cannot be read: producers"},
		{respond(200, `{"producers":[],"next":1}`), "the answer of the hub cannot be read: next"},
		{respond(200, `{"producers":[],"next":":"}`), "the answer of the hub cannot be read: next"},
		{respond(200, `{"producers":[],"next":"?first=b"}`), "a page of producers is followed by itself"},
	} {
		c, _ := serve(t, brokerclient.Options{}, respond(200, `{"producers":[{"id":"a"}],"next":"?first=b"}`), tc.second)
		var errs []error
		for p, err := range c.List(t.Context(), brokerclient.Producers) {
			if err != nil {
				require.Nil(t, p)
				errs = append(errs, err)
			}
		}
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0], tc.want)
	}
}

// A client has all tokens. Each of its requests contains only the tokens that it requires.
func TestRequests_CarryNoTokenThatTheyDoNotNeed(t *testing.T) {
	const admin, channel, consumer = "X-Broker-Admin-Token", "X-Broker-Channel-Token", "X-Broker-Consumer-Token"
	withoutAdmin := allTokens
	withoutAdmin.AdminToken = ""
	for name, tc := range map[string]struct {
		do            func(context.Context, *brokerclient.Client) error
		with, without []string // headers with tokens, from a client that has the operators' token and from one that does not
	}{
		"put": {func(ctx context.Context, c *brokerclient.Client) error {
			_, _, err := c.Put(ctx, brokerclient.Channel("a"), &brokerclient.Draft{})
			return err
		}, []string{admin}, nil},
		"get": {func(ctx context.Context, c *brokerclient.Client) error {
			_, err := c.Get(ctx, brokerclient.Channel("a"))
			return err
		}, []string{admin}, []string{channel}},
		"list": {func(ctx context.Context, c *brokerclient.Client) error {
			return drain(c.List(ctx, brokerclient.Channels))
		}, []string{admin}, []string{channel}},
		"messages": {func(ctx context.Context, c *brokerclient.Client) error {
			return drain(c.Messages(ctx, "a", time.Time{}))
		}, []string{admin}, []string{channel}},
		"dead letters": {func(ctx context.Context, c *brokerclient.Client) error {
			return drain(c.DeadLetters(ctx, "a", "b"))
		}, []string{admin}, []string{consumer}},
		"retrigger a job": {func(ctx context.Context, c *brokerclient.Client) error {
			return c.RetriggerJob(ctx, "a", "m0.1", "b")
		}, []string{admin}, []string{consumer}},
		"retrigger a message": {func(ctx context.Context, c *brokerclient.Client) error {
			return c.Retrigger(ctx, "a", "m0.1")
		}, []string{admin}, nil},
		"peek": {func(ctx context.Context, c *brokerclient.Client) error {
			_, err := c.Peek(ctx, "a", "b", 0)
			return err
		}, []string{admin}, []string{consumer}},
		"publish": {func(ctx context.Context, c *brokerclient.Client) error {
			_, err := c.Publish(ctx, "a", &brokerclient.Message{})
			return err
		}, []string{channel, "X-Broker-Producer-Id", "X-Broker-Producer-Token"}, []string{channel, "X-Broker-Producer-Id", "X-Broker-Producer-Token"}},
	} {
		for creds, want := range map[*brokerclient.Credentials][]string{&allTokens: tc.with, &withoutAdmin: tc.without} {
			c, h := serve(t, brokerclient.Options{Credentials: *creds}, respond(403, `{"title":"No"}`))
			err := tc.do(t.Context(), c)
			require.EqualError(t, err, "No (403)", name)
			var got []string
			for _, header := range []string{admin, channel, "X-Broker-Producer-Id", "X-Broker-Producer-Token", consumer, "Authorization"} {
				if h.received()[0].header.Get(header) != "" {
					got = append(got, header)
				}
			}
			require.Equal(t, want, got, name)
		}
	}
}

func drain[T any](all iter.Seq2[T, error]) error {
	var errs []error
	for _, err := range all {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func TestNew_RefusesAnInvalidURL(t *testing.T) {
	for _, text := range []string{"", "hub.example", "ftp://hub.example", "https://hub.example?x=1", "https://hub.example#x", "https://user:hush@%zz"} {
		_, err := brokerclient.New(brokerclient.Options{URL: text})
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "hush")
	}
}

func TestErrors_HaveNoTokens(t *testing.T) {
	c, err := brokerclient.New(brokerclient.Options{URL: "http://user:hush@127.0.0.1:1", Credentials: allTokens, Budget: -1})
	require.NoError(t, err)
	_, _, err = c.Put(t.Context(), brokerclient.Producer("shop"), &brokerclient.Draft{Token: "hush"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hush")
	require.NotContains(t, err.Error(), "t-admin")
}
