package brokerclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/api/webhook"
)

// A consumerFixture is a consumer with a message that a hub can deliver to it.
type consumerFixture struct {
	url     string
	calls   []*brokerclient.Delivery
	fail    error // error that the function that handles messages returns
	log     bytes.Buffer
	message webhook.ConsumerCall
}

func newConsumer(t *testing.T, o brokerclient.ConsumerOptions) *consumerFixture {
	t.Helper()
	w := new(consumerFixture)
	o.Logger = slog.New(slog.NewTextHandler(&w.log, nil))
	handler, err := brokerclient.NewConsumer(o, func(_ context.Context, d *brokerclient.Delivery) error {
		w.calls = append(w.calls, d)
		return w.fail
	})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w.url = server.URL
	w.message = webhook.ConsumerCall{
		ID: "msg_1", Attempts: 2, CallbackURL: server.URL + "/hook", Token: webhook.Key(o.Tokens[0]), TokenHeader: o.TokenHeader,
		Channel: "prices", Consumer: "billing", Message: "m7.3", Priority: 7, ContentType: "text/csv", Payload: []byte("a;b\n"),
		Metadata: map[string]string{"X-Trace": "t-1", "A-B": "2"},
	}
	return w
}

// call delivers the message to the consumer, from a hub with the options o.
func (w *consumerFixture) call(t *testing.T, o webhook.Options) webhook.Result {
	t.Helper()
	o.Allow, o.AllowHTTP = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true
	hub := webhook.New(o)
	defer hub.Close()
	r, err := hub.Call(t.Context(), &w.message)
	require.NoError(t, err)
	return r
}

func TestAConsumer_GetsTheMessagesOfItsHub(t *testing.T) {
	for _, token := range []string{"a-token", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="} {
		w := newConsumer(t, brokerclient.ConsumerOptions{Tokens: []string{token}})
		require.Equal(t, http.StatusNoContent, w.call(t, webhook.Options{}).Answer.Status)
		require.Equal(t, []*brokerclient.Delivery{{
			ID: "msg_1", Message: "m7.3", Channel: "prices", Consumer: "billing", Priority: 7, Attempts: 2, ContentType: "text/csv",
			Metadata: map[string]string{"X-Trace": "t-1", "A-B": "2"}, Payload: []byte("a;b\n"),
		}}, w.calls)
		require.Empty(t, w.log.String())

		w.message.Metadata, w.message.Payload, w.message.ContentType = nil, nil, ""
		require.Equal(t, http.StatusNoContent, w.call(t, webhook.Options{}).Answer.Status)
		require.Empty(t, w.calls[1].Metadata)
		require.Empty(t, w.calls[1].Payload)
		require.Equal(t, "application/octet-stream", w.calls[1].ContentType)
	}
}

func TestAConsumer_AcceptsTwoTokensWhileOneIsReplaced(t *testing.T) {
	w := newConsumer(t, brokerclient.ConsumerOptions{Tokens: []string{"new", "old"}, TokenHeader: "X-Token"})
	for _, token := range []webhook.Key{"new", "old"} {
		w.message.Token = token
		require.Equal(t, http.StatusNoContent, w.call(t, webhook.Options{}).Answer.Status, token)
	}
	w.message.Token = "older"
	require.Equal(t, http.StatusUnauthorized, w.call(t, webhook.Options{}).Answer.Status)
	w.message.Token, w.message.TokenHeader = "new", ""
	require.Equal(t, http.StatusUnauthorized, w.call(t, webhook.Options{}).Answer.Status)
	require.Len(t, w.calls, 2)
}

func TestAConsumer_RefusesCallsThatAreNotFromItsHub(t *testing.T) {
	hour := func(d time.Duration) webhook.Options {
		return webhook.Options{Clock: func() time.Time { return time.Now().Add(d) }}
	}
	for name, tc := range map[string]struct {
		hub    webhook.Options
		change func(*http.Request)
		want   string
	}{
		"another token":             {change: func(r *http.Request) { r.Header.Set("X-Broker-Consumer-Token", "a-tokeN") }, want: "the token of this consumer"},
		"no token":                  {change: func(r *http.Request) { r.Header.Del("X-Broker-Consumer-Token") }, want: "the token of this consumer"},
		"no signature":              {change: func(r *http.Request) { r.Header.Del("Webhook-Signature") }, want: "no webhook-signature"},
		"another id":                {change: func(r *http.Request) { r.Header.Set("Webhook-Id", "msg_2") }, want: "none of its signatures"},
		"a call of long ago":        {hub: hour(-time.Hour), want: "old, more than 5m0s"},
		"a call of a later time":    {hub: hour(time.Hour), want: "in the future"},
		"a signature by another":    {change: func(r *http.Request) { r.Header.Set("Webhook-Signature", "v1,"+strings.Repeat("A", 43)+"=") }, want: "none of its signatures"},
		"another body than signed":  {change: func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); r.Body = http.NoBody }, want: "none of its signatures"},
		"a call without a date":     {change: func(r *http.Request) { r.Header.Del("Webhook-Timestamp") }, want: "webhook-timestamp"},
		"a call that is no message": {change: func(r *http.Request) { r.Header = http.Header{} }, want: "the token of this consumer"},
	} {
		var calls atomic.Int64
		handler, err := brokerclient.NewConsumer(brokerclient.ConsumerOptions{Tokens: []string{"a-token"}}, func(context.Context, *brokerclient.Delivery) error {
			calls.Add(1)
			return nil
		})
		require.NoError(t, err)
		var answer *httptest.ResponseRecorder
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tc.change != nil {
				tc.change(r)
			}
			answer = httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			w.WriteHeader(answer.Code)
		}))
		w := &consumerFixture{message: webhook.ConsumerCall{ID: "msg_1", CallbackURL: server.URL, Token: "a-token", Message: "m0.1", Payload: []byte("x")}}
		require.Equal(t, http.StatusUnauthorized, w.call(t, tc.hub).Answer.Status, name)
		require.Contains(t, answer.Body.String(), tc.want, name)
		require.NotContains(t, answer.Body.String(), "a-token", name)
		require.Zero(t, calls.Load(), name)
		server.Close()
	}
}

func TestAConsumer_ThatFailsIsCalledAgain(t *testing.T) {
	w := newConsumer(t, brokerclient.ConsumerOptions{Tokens: []string{"a-token"}})
	w.fail = errors.New("the disk is full: hush")
	r := w.call(t, webhook.Options{})
	require.Equal(t, http.StatusInternalServerError, r.Answer.Status)
	require.Zero(t, r.Answer.RetryAfter)
	require.NotContains(t, string(r.Body), "hush", "the reason is not for the hub")
	require.Contains(t, w.log.String(), "the disk is full")

	w.fail = fmt.Errorf("store: %w", &brokerclient.RetryAfterError{After: 1500 * time.Millisecond, Err: errors.New("busy")})
	r = w.call(t, webhook.Options{})
	require.Equal(t, http.StatusServiceUnavailable, r.Answer.Status)
	require.Equal(t, 2*time.Second, r.Answer.RetryAfter)
	require.EqualError(t, w.fail, "store: busy")
	require.EqualError(t, &brokerclient.RetryAfterError{After: time.Second}, "retry after 1s")
	require.Len(t, w.calls, 2)
}

func TestAConsumer_BoundsWhatItReads(t *testing.T) {
	w := newConsumer(t, brokerclient.ConsumerOptions{Tokens: []string{"a-token"}, MaxBody: 3})
	require.Equal(t, http.StatusRequestEntityTooLarge, w.call(t, webhook.Options{}).Answer.Status)
	w.message.Payload = []byte("abc")
	require.Equal(t, http.StatusNoContent, w.call(t, webhook.Options{}).Answer.Status)

	w = newConsumer(t, brokerclient.ConsumerOptions{Tokens: []string{"a-token"}})
	w.message.Payload = bytes.Repeat([]byte("x"), 1<<20)
	require.Equal(t, http.StatusNoContent, w.call(t, webhook.Options{}).Answer.Status, "the largest message")
	resp, err := http.Get(w.url)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	require.Equal(t, "POST", resp.Header.Get("Allow"))
}

func TestNewConsumer_NeedsAToken(t *testing.T) {
	for _, tokens := range [][]string{nil, {""}, {"a", ""}} {
		_, err := brokerclient.NewConsumer(brokerclient.ConsumerOptions{Tokens: tokens}, nil)
		require.Error(t, err)
	}
}
