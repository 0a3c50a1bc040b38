package brokerclient_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
)

const storedMessage = `{"id":"m7.12","producerMessageId":"offer-1","producer":"shop","priority":7,"contentType":"text/plain",` +
	`"metadata":{"X-Trace":"t-1"},"received":"2026-03-01T10:00:00.5Z","status":"Out-for-delivery"`

func TestMessages_AreListedSinceATime(t *testing.T) {
	c, h := serve(t, brokerclient.Options{Credentials: allTokens}, respond(200, `{"messages":[`+storedMessage+`}]}`))
	since := time.Date(2026, 3, 1, 9, 0, 0, 500, time.UTC)
	n := 0
	for m, err := range c.Messages(t.Context(), "prices", since) {
		require.NoError(t, err)
		require.Equal(t, &brokerclient.StoredMessage{
			ID: "m7.12", ProducerMessageID: "offer-1", Producer: "shop", Priority: 7, ContentType: "text/plain",
			Metadata: map[string]string{"X-Trace": "t-1"}, Received: time.Date(2026, 3, 1, 10, 0, 0, 500e6, time.UTC), Status: "Out-for-delivery",
		}, m)
		n++
	}
	require.Equal(t, 1, n)
	require.Equal(t, "/broker/channel/prices/messages?size=100&statusChangedSince=2026-03-01T09%3A00%3A00.0000005Z", h.received()[0].target)
}

func TestAMessage_HasItsPayloadAsItWasSent(t *testing.T) {
	for answer, want := range map[string]string{
		storedMessage + `,"payload":"ä\n"}`:         "ä\n",
		storedMessage + `,"payloadBase64":"/wD+"}`:  "\xff\x00\xfe",
		storedMessage + `,"payload":"","jobs":[]}`:  "",
		storedMessage + `,"payload":"x","later":1}`: "x",
	} {
		c, h := serve(t, brokerclient.Options{Credentials: allTokens}, respond(200, answer))
		m, err := c.Message(t.Context(), "prices", "offer-1")
		require.NoError(t, err)
		require.NotNil(t, m.Payload)
		require.Equal(t, want, string(m.Payload))
		require.Equal(t, "GET /broker/channel/prices/message/offer-1", h.received()[0].method+" "+h.received()[0].target)

		text, err := json.Marshal(m)
		require.NoError(t, err)
		var again brokerclient.StoredMessage
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, *m, again, "it is written as it is read")
	}
}

func TestJobs_AreReadWithTheirHistory(t *testing.T) {
	const job = `{"id":"billing","consumer":"billing","message":"m7.12","status":"Dead","attempts":2,"reason":"all 2 attempts failed",` +
		`"history":[{"number":1,"began":"2026-03-01T10:00:00Z","durationMs":12.5,"status":503,"error":"status 503"}],"retriggerUrl":"/x"}`
	want := brokerclient.Job{
		ID: "billing", Consumer: "billing", Message: "m7.12", Status: "Dead", Attempts: 2, Reason: "all 2 attempts failed",
		History: []brokerclient.Attempt{{Number: 1, Began: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), DurationMS: 12.5, Status: 503, Error: "status 503"}},
	}
	c, h := serve(t, brokerclient.Options{Credentials: allTokens},
		respond(200, `{"deadLetters":[`+job+`]}`), respond(200, storedMessage+`,"payload":"","jobs":[`+job+`]}`))
	for j, err := range c.DeadLetters(t.Context(), "prices", "billing") {
		require.NoError(t, err)
		require.Equal(t, &want, j)
	}
	require.Equal(t, "/broker/channel/prices/consumer/billing/dlq?size=100", h.received()[0].target)
	m, err := c.Message(t.Context(), "prices", "m7.12")
	require.NoError(t, err)
	require.Equal(t, []brokerclient.Job{want}, m.Jobs)
}

func TestRetrigger_IsNotRepeatedWhenItMayHaveBegun(t *testing.T) {
	c, h := serve(t, brokerclient.Options{Credentials: allTokens}, respond(202, ""), respond(202, ""), respond(503, `{"title":"Away"}`))
	require.NoError(t, c.Retrigger(t.Context(), "prices", "m7.12"))
	require.NoError(t, c.RetriggerJob(t.Context(), "prices", "m7.12", "billing"))
	require.EqualError(t, c.RetriggerJob(t.Context(), "prices", "m7.12", "billing"), "Away (503)")
	require.Len(t, h.received(), 3)
	require.Equal(t, "POST /broker/channel/prices/message/m7.12/re-trigger", h.received()[0].method+" "+h.received()[0].target)
	require.Equal(t, "POST /broker/channel/prices/message/m7.12/job/billing/re-trigger", h.received()[1].method+" "+h.received()[1].target)
}

func TestPeek_ReturnsABundleOrNothing(t *testing.T) {
	c, h := serve(t, brokerclient.Options{Credentials: allTokens},
		respond(200, `{"bundle":"b-1","messages":[`+storedMessage+`,"payload":"x"}],"dequeueUrl":"/x"}`), respond(204, ""), respond(204, ""))
	b, err := c.Peek(t.Context(), "prices", "billing", 10)
	require.NoError(t, err)
	require.Equal(t, "b-1", b.ID)
	require.Len(t, b.Messages, 1)
	require.Equal(t, "x", string(b.Messages[0].Payload))
	require.Equal(t, "GET /broker/channel/prices/consumer/billing/peek?size=10", h.received()[0].method+" "+h.received()[0].target)

	b, err = c.Peek(t.Context(), "prices", "billing", 0)
	require.NoError(t, err)
	require.Nil(t, b)
	require.Equal(t, "/broker/channel/prices/consumer/billing/peek", h.received()[1].target)

	require.NoError(t, c.Dequeue(t.Context(), "prices", "billing", "b-1"))
	require.Equal(t, "DELETE /broker/channel/prices/consumer/billing/dequeue/b-1", h.received()[2].method+" "+h.received()[2].target)
}

func TestOverdue_ReturnsPages(t *testing.T) {
	const job = `{"id":"billing","channel":"prices","consumer":"billing","message":"m7.12","status":"In-flight","attempts":0,"retriggerUrl":"/x","messageUrl":"/y"}`
	c, h := serve(t, brokerclient.Options{Credentials: allTokens},
		respond(200, `{"jobs":[`+job+`],"next":"/broker/overdue?delay=2s&first=a+b"}`), respond(200, `{"jobs":[]}`))
	p, err := c.Overdue(t.Context(), 2*time.Second, "")
	require.NoError(t, err)
	require.Equal(t, &brokerclient.OverduePage{
		Jobs: []brokerclient.Job{{ID: "billing", Channel: "prices", Consumer: "billing", Message: "m7.12", Status: "In-flight"}}, Next: "a b",
	}, p)
	p, err = c.Overdue(t.Context(), 2*time.Second, p.Next)
	require.NoError(t, err)
	require.Empty(t, p.Next)
	require.Empty(t, p.Jobs)
	require.Equal(t, "/broker/overdue?delay=2s", h.received()[0].target)
	require.Equal(t, "/broker/overdue?delay=2s&first=a+b", h.received()[1].target)
}
