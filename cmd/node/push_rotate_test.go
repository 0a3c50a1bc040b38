package node_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// signature returns the signature that a call must have if it was signed with a
// Standard Webhooks secret.
func (c *receivedCall) signature(t *testing.T, secret string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	require.NoError(t, err)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(c.header.Get("Webhook-Id") + "." + c.header.Get("Webhook-Timestamp") + "."))
	mac.Write(c.body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestARotatedSecret_KeepsThePreviousOneUntilTheGraceEnds(t *testing.T) {
	r := startReceiver(t, nil)
	var ahead atomic.Int64
	n, stop := start(t, pushSettings(""), node.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	const first = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	id := createSubscription(t, n, fmt.Sprintf(`{"callback_url":%q,"hmac_secret_key":%q}`, r.URL, first))
	status, body := send(t, n, http.MethodPost, "/v1/subscriptions/"+id+"/rotate", "application/json", "")
	require.Equal(t, http.StatusOK, status, body)
	var rotated struct {
		Secret string `json:"hmac_secret_key"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &rotated))
	publishEvents(t, n, "1")
	c := <-r.calls
	require.Equal(t, c.signature(t, rotated.Secret)+" "+c.signature(t, first), c.header.Get("Webhook-Signature"))
	ahead.Store(int64(23 * time.Hour))
	publishEvents(t, n, "2")
	c = <-r.calls
	require.Equal(t, c.signature(t, rotated.Secret)+" "+c.signature(t, first), c.header.Get("Webhook-Signature"))
	ahead.Store(int64(25 * time.Hour))
	publishEvents(t, n, "3")
	c = <-r.calls
	require.Equal(t, c.signature(t, rotated.Secret), c.header.Get("Webhook-Signature"))

	// After this rotation, the call must be signed twice: with the new HMAC key
	// in the Authorization header, and with the earlier Standard Webhooks
	// secret.
	status, body = send(t, n, http.MethodPost, "/v1/subscriptions/"+id+"/rotate", "application/json", `{"hmac_secret_key":"any key"}`)
	require.Equal(t, http.StatusOK, status, body)
	publishEvents(t, n, "4")
	c = <-r.calls
	require.Equal(t, c.signature(t, rotated.Secret), c.header.Get("Webhook-Signature"))
	require.NotEmpty(t, c.header.Get("Authorization"))
	require.NoError(t, stop())
}
