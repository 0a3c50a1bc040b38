package webhook_test

import (
	"net/http"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
)

func consumerCall() *webhook.ConsumerCall {
	return &webhook.ConsumerCall{
		ID: "msg_1", Attempts: 2, CallbackURL: "http://receiver.example/hook", Token: "a-token",
		Channel: "prices", Consumer: "shop", Message: "m7.3", Priority: 7,
		ContentType: "text/csv", Payload: []byte("a;b\n"),
	}
}

// consumerRequest makes a call, and returns the request that the consumer receives.
func consumerRequest(t *testing.T, call *webhook.ConsumerCall) receivedCall {
	t.Helper()
	n := newNetwork(t)
	var got []receivedCall
	n.add("receiver.example", "8.8.8.8", recordCalls(&got))
	r, err := n.client(webhook.Options{}).Call(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, r.Answer.Status)
	require.Len(t, got, 1)
	return got[0]
}

func TestAConsumer_GetsTheMessageAsItsProducerSentIt(t *testing.T) {
	r := consumerRequest(t, consumerCall())
	require.Equal(t, http.MethodPost, r.method)
	require.Equal(t, "a;b\n", string(r.body))
	for name, want := range map[string]string{
		"Content-Type": "text/csv", "User-Agent": "MessageHub", "X-Broker-Message-ID": "m7.3", "X-Broker-Channel-ID": "prices",
		"X-Broker-Consumer-ID": "shop", "X-Broker-Message-Priority": "7", "X-Broker-Message-Attempt": "2", "X-Broker-Consumer-Token": "a-token",
	} {
		require.Equal(t, []string{want}, r.header.Values(name), name)
	}
	require.NotContains(t, r.header, "X-Broker-Metadata-Headers")

	call := consumerCall()
	call.ContentType, call.Payload, call.TokenHeader = "", nil, "X-Token"
	r = consumerRequest(t, call)
	require.Empty(t, r.body)
	require.Equal(t, "application/octet-stream", r.header.Get("Content-Type"))
	require.Equal(t, "a-token", r.header.Get("X-Token"))
	require.NotContains(t, r.header, "X-Broker-Consumer-Token")
}

func TestMetadata_IsSentAndReplacesNoHeaderOfTheHub(t *testing.T) {
	call := consumerCall()
	call.Metadata = map[string]string{"X-Trace": "1", "A-B": "2", "X-Broker-Consumer-Token": "stolen", "User-Agent": "other", "Host": "evil.example"}
	r := consumerRequest(t, call)
	require.Equal(t, "1", r.header.Get("X-Trace"))
	require.Equal(t, "A-B, X-Trace", r.header.Get("X-Broker-Metadata-Headers"))
	require.Equal(t, []string{"a-token"}, r.header.Values("X-Broker-Consumer-Token"))
	require.Equal(t, []string{"MessageHub"}, r.header.Values("User-Agent"))
}

func TestACallToAConsumer_IsVerifiedByItsToken(t *testing.T) {
	for _, token := range []webhook.Key{"a-token", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"} {
		call := consumerCall()
		call.Token = token
		r := consumerRequest(t, call)
		verifier, err := standardwebhooks.NewWebhook(webhook.TokenVerifyKey(token))
		require.NoError(t, err)
		require.NoError(t, verifier.VerifyIgnoringTimestamp(r.body, r.header))
		require.Error(t, verifier.VerifyIgnoringTimestamp([]byte("a;c\n"), r.header))
	}
	require.NotContains(t, webhook.TokenVerifyKey("a-token"), "a-token")
}

func TestACallToAConsumer_IsGuarded(t *testing.T) {
	n := newNetwork(t)
	n.add("receiver.example", "169.254.169.254", recordCalls(new([]receivedCall)))
	r, err := n.client(webhook.Options{}).Call(t.Context(), consumerCall())
	require.NoError(t, err)
	require.Zero(t, r.Answer.Status)
	require.NotEmpty(t, r.Answer.Error)
}
