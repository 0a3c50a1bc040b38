package brokerclient_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
)

var accepted = respond(http.StatusCreated, "", "Location", "/broker/channel/prices/message/m7.12")

func TestPublish_SendsTheMessageUnchanged(t *testing.T) {
	c, h := serve(t, brokerclient.Options{Credentials: allTokens}, accepted)
	id, err := c.Publish(t.Context(), "prices", &brokerclient.Message{
		ID: "offer 1/2", Priority: 7, ContentType: "text/csv", Metadata: map[string]string{"X-Trace": "t-1", "A-B": "2"}, Payload: []byte("a;b\n"),
	})
	require.NoError(t, err)
	require.Equal(t, "m7.12", id)
	require.Len(t, h.received(), 1)
	r := h.received()[0]
	require.Equal(t, "POST /broker/channel/prices/broadcast", r.method+" "+r.target)
	require.Equal(t, "a;b\n", r.body)
	for name, want := range map[string]string{
		"X-Broker-Channel-Token": "t-channel", "X-Broker-Producer-ID": "shop", "X-Broker-Producer-Token": "t-producer",
		"X-Broker-Message-ID": "offer 1/2", "X-Broker-Message-Priority": "7", "Content-Type": "text/csv",
		"X-Broker-Metadata-Headers": "A-B, X-Trace", "X-Trace": "t-1", "A-B": "2",
	} {
		require.Equal(t, []string{want}, r.header.Values(name), name)
	}
	require.Empty(t, r.header.Get("X-Broker-Admin-Token"))
}

func TestPublish_OmitsEmptyFields(t *testing.T) {
	c, h := serve(t, brokerclient.Options{Credentials: allTokens, URL: "/behind/a/proxy"}, accepted)
	_, err := c.Publish(t.Context(), "prices", &brokerclient.Message{})
	require.NoError(t, err)
	r := h.received()[0]
	require.Equal(t, "/behind/a/proxy/broker/channel/prices/broadcast", r.target)
	require.Empty(t, r.body)
	for _, name := range []string{"X-Broker-Message-ID", "X-Broker-Message-Priority", "Content-Type", "X-Broker-Metadata-Headers"} {
		require.NotContains(t, r.header, http.CanonicalHeaderKey(name))
	}
}

// A response is lost or incomplete, or has the status 502 or 503. Publish repeats the message with
// the same ID and content.
func TestPublish_RepeatsAnAmbiguousOutcomeWithTheSameID(t *testing.T) {
	cut := respond(http.StatusCreated, "{", "Content-Length", "100")
	c, h := serve(t, brokerclient.Options{}, hangUp, respond(503, "{}"), cut, respond(502, "{}"), accepted)
	id, err := c.Publish(t.Context(), "prices", &brokerclient.Message{ID: "one", Payload: []byte("x")})
	require.NoError(t, err)
	require.Equal(t, "m7.12", id)
	require.Len(t, h.received(), 5)
	for _, r := range h.received() {
		require.Equal(t, h.received()[0], r)
		require.Equal(t, "one", r.header.Get("X-Broker-Message-ID"))
	}
}

func TestPublish_SendsAMessageWithoutAnIDOnce(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"lost": hangUp, "503": respond(503, "{}"), "504": respond(504, "{}")} {
		c, h := serve(t, brokerclient.Options{}, answer, accepted)
		_, err := c.Publish(t.Context(), "prices", &brokerclient.Message{})
		require.Error(t, err, name)
		require.Len(t, h.received(), 1, name)
	}
	c, h := serve(t, brokerclient.Options{}, respond(429, "{}"), accepted)
	_, err := c.Publish(t.Context(), "prices", &brokerclient.Message{})
	require.NoError(t, err, "a hub that is busy has not stored it")
	require.Len(t, h.received(), 2)
}

func TestPublish_DoesNotRepeatWhatTheHubRefuses(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 409, 413, 500, 307} {
		c, h := serve(t, brokerclient.Options{Credentials: allTokens},
			respond(status, `{"title":"A title","detail":"a detail","type":"urn:x","errors":[{"pointer":"/id","detail":"too long"}]}`, "Location", "/elsewhere"))
		_, err := c.Publish(t.Context(), "prices", &brokerclient.Message{ID: "one"})
		p, isProblem := errors.AsType[*brokerclient.Problem](err)
		require.True(t, isProblem, "%d: %v", status, err)
		require.Equal(t, status, p.Status)
		if status >= 400 {
			require.Contains(t, err.Error(), "a detail; id: too long")
		}
		require.Len(t, h.received(), 1)
	}
}

func TestPublish_RefusesMetadataThatReplacesAHeader(t *testing.T) {
	c, h := serve(t, brokerclient.Options{Credentials: allTokens}, accepted)
	for _, m := range []map[string]string{{"X-Broker-Producer-Token": "x"}, {"X-A": "1", "x-a": "2"}} {
		_, err := c.Publish(t.Context(), "prices", &brokerclient.Message{Metadata: m})
		require.ErrorContains(t, err, "metadata: header ")
	}
	require.Empty(t, h.received())
}

func TestPublish_FailsWithoutALocation(t *testing.T) {
	for _, location := range []string{"", "/elsewhere", ":"} {
		c, _ := serve(t, brokerclient.Options{}, respond(200, "", "Location", location))
		_, err := c.Publish(t.Context(), "prices", &brokerclient.Message{ID: "one"})
		require.ErrorContains(t, err, "it does not say where the message is")
	}
}

func TestAProblem_IsReadEvenIfItIsMalformed(t *testing.T) {
	for _, tc := range []struct {
		answer http.HandlerFunc
		text   string
		after  time.Duration
	}{
		{respond(403, `{"title":"No","detail":"the credentials are wrong","instance":"urn:messagehub:request:r1"}`), "No (403): the credentials are wrong", 0},
		{respond(500, `{"title":"Internal error","detail":"Tell.","instance":"urn:messagehub:request:r1"}`, "Retry-After", "7"), "Internal error (500): Tell. Request r1.", 7 * time.Second},
		{respond(404, "<html>"), `Not Found (404): The answer is no problem document; is this a hub? It begins "<html>".`, 0},
		{respond(404, "x", "Content-Type", "text/plain", "Retry-After", "1000000"), `Not Found (404): The answer is no problem document; is this a hub? It begins "x".`, 0},
	} {
		c, _ := serve(t, brokerclient.Options{}, tc.answer)
		_, err := c.Message(t.Context(), "prices", "m0.1")
		require.EqualError(t, err, tc.text)
		p, _ := errors.AsType[*brokerclient.Problem](err)
		require.Equal(t, tc.after, p.RetryAfter)
	}
}
