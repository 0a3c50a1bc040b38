package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

const ownID = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"

func TestDeliveries_AreShownUntilTheyAreDead(t *testing.T) {
	n, _ := start(t, pushSettings(t.TempDir()), node.Options{})
	r := startReceiver(t, func(*receivedCall) int { return http.StatusTeapot })
	status, text := send(t, n, "PUT", "/v1/subscriptions/"+ownID, "application/json", `{"callback_url":"`+r.URL+`"}`)
	require.Equal(t, http.StatusCreated, status, text)
	status, text = send(t, n, "POST", "/v1/events", "application/cloudevents+json", `{"specversion":"1.0","id":"one","source":"/tests","type":"made"}`)
	require.Equal(t, http.StatusAccepted, status, text)
	r.awaitCalls(t, "one", "one", "one")

	// The fourth and last attempt is due one minute after the third.
	var why struct {
		Delivery struct {
			State    string
			Attempts int
			Event    struct{ ID, Type string }
			History  []struct {
				Status int
				Error  string
			}
		}
		Cause        string
		AttemptsLeft int `json:"attempts_left"`
		Sentences    []string
	}
	require.Eventually(t, func() bool {
		status, text = send(t, n, "GET", "/v1/deliveries/"+ownID+".0.0/explain", "", "")
		require.Equal(t, http.StatusOK, status, text)
		require.NoError(t, json.Unmarshal([]byte(text), &why))
		return why.Delivery.Attempts == 3 && why.Cause == "backoff"
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, "retrying", why.Delivery.State)
	require.Equal(t, 1, why.AttemptsLeft)
	require.Equal(t, "one", why.Delivery.Event.ID)
	require.Equal(t, "made", why.Delivery.Event.Type)
	require.Len(t, why.Delivery.History, 3)
	require.Equal(t, http.StatusTeapot, why.Delivery.History[2].Status)
	status, text = send(t, n, "GET", "/v1/deliveries?subscription="+ownID+"&state=retrying", "", "")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, `"id":"`+ownID+`.0.0"`)
	status, _ = send(t, n, "GET", "/v1/deliveries/"+ownID+".0.0", "", "", "X-Actor-Id", "another")
	require.Equal(t, http.StatusNotFound, status)
}

func TestATestCall_IsSentLikeADelivery(t *testing.T) {
	n, _ := start(t, pushSettings(t.TempDir()), node.Options{})
	calls := make(chan http.Header, 10)
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		calls <- req.Header
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("thanks"))
	}))
	t.Cleanup(r.Close)
	status, text := send(t, n, "PUT", "/v1/subscriptions/"+ownID, "application/json",
		`{"callback_url":"`+r.URL+`","jmespath_query":"type == 'never'","hmac_secret_key":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}`)
	require.Equal(t, http.StatusCreated, status, text)
	_, before := send(t, n, "GET", "/v1/subscriptions/"+ownID, "", "")
	status, text = send(t, n, "POST", "/v1/subscriptions/"+ownID+"/test", "", "")
	require.Equal(t, http.StatusOK, status, text)
	var result struct {
		Success       bool
		Status        int
		Answer, Error string
	}
	require.NoError(t, json.Unmarshal([]byte(text), &result))
	require.True(t, result.Success)
	require.Equal(t, http.StatusAccepted, result.Status)
	require.Equal(t, "thanks", result.Answer)
	header := <-calls
	require.Contains(t, header.Get("Webhook-Signature"), "v1,")
	require.NotEmpty(t, header.Get("Webhook-Id"))
	_, after := send(t, n, "GET", "/v1/subscriptions/"+ownID, "", "")
	require.Equal(t, before, after, "nothing is counted")
	status, text = send(t, n, "GET", "/v1/deliveries?subscription="+ownID, "", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"deliveries":[]}`, text, "nothing is stored")
}

func TestATestCall_ReachesNoAddressThatIsNotAllowed(t *testing.T) {
	dir := t.TempDir()
	n, stop := start(t, pushSettings(dir), node.Options{})
	r := startReceiver(t, nil)
	status, text := send(t, n, "PUT", "/v1/subscriptions/"+ownID, "application/json", `{"callback_url":"`+r.URL+`"}`)
	require.Equal(t, http.StatusCreated, status, text)
	require.NoError(t, stop())
	cfg := pushSettings(dir)
	cfg.Push.Allow = nil
	n, _ = start(t, cfg, node.Options{})
	status, text = send(t, n, "POST", "/v1/subscriptions/"+ownID+"/test", "", "")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, `"success":false`)
	require.Empty(t, r.calls)
}

// An event that was delivered long ago must be found in the pages of its topic.
func TestAnOldDelivery_IsFoundInItsTopic(t *testing.T) {
	n, _ := start(t, pushSettings(t.TempDir()), node.Options{})
	r := startReceiver(t, nil)
	status, text := send(t, n, "PUT", "/v1/subscriptions/"+ownID, "application/json", `{"callback_url":"`+r.URL+`"}`)
	require.Equal(t, http.StatusCreated, status, text)
	const events, batch = 600, 20
	var want []string
	for first := 0; first < events; first += batch {
		var all []string
		for i := first; i < first+batch; i++ {
			all = append(all, fmt.Sprintf(`{"specversion":"1.0","id":"event-%d","source":"/tests","type":"made","data":%q}`, i, strings.Repeat("x", 500)))
			want = append(want, fmt.Sprintf("event-%d", i))
		}
		status, text = send(t, n, "POST", "/v1/events", "application/cloudevents-batch+json", "["+strings.Join(all, ",")+"]")
		require.Equal(t, http.StatusAccepted, status, text)
	}
	r.awaitCalls(t, want...)
	require.Eventually(t, func() bool {
		_, text = send(t, n, "GET", "/v1/subscriptions/"+ownID, "", "")
		return strings.Contains(text, fmt.Sprintf(`"delivered":%d`, events))
	}, 10*time.Second, 10*time.Millisecond)
	for _, number := range []int{0, 1, 19, 20, 299, 300, 500, 577, 599} {
		status, text = send(t, n, "GET", fmt.Sprintf("/v1/deliveries/%s.0.%d", ownID, number), "", "")
		require.Equal(t, http.StatusOK, status, text)
		require.Contains(t, text, `"state":"delivered"`)
		require.Contains(t, text, fmt.Sprintf(`"id":"event-%d"`, number))
	}
	status, _ = send(t, n, "GET", fmt.Sprintf("/v1/deliveries/%s.0.%d", ownID, events), "", "")
	require.Equal(t, http.StatusNotFound, status)
}

// A caller without rights must get the same response whether or not a
// subscription exists.
func TestACallerWithoutRights_CannotDetectASubscription(t *testing.T) {
	n, _ := start(t, pushSettings(t.TempDir()), node.Options{})
	const none = "1b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	status, text := send(t, n, "PUT", "/v1/subscriptions/"+ownID, "application/json", `{"callback_url":"http://127.0.0.1:9/"}`)
	require.Equal(t, http.StatusCreated, status, text)
	for _, request := range []string{
		"GET /v1/subscriptions/ID", "POST /v1/subscriptions/ID/pause", "POST /v1/subscriptions/ID/test", "DELETE /v1/subscriptions/ID",
		"GET /v1/deliveries?subscription=ID", "GET /v1/deliveries/ID.0.0", "GET /v1/deliveries/ID.0.0/explain",
	} {
		method, path, _ := strings.Cut(request, " ")
		details := make(map[string]bool)
		for _, id := range []string{ownID, none} {
			status, text := send(t, n, method, strings.Replace(path, "ID", id, 1), "", "", "X-Actor-Id", "a-stranger")
			require.Equal(t, http.StatusNotFound, status, text)
			var problem struct{ Detail string }
			require.NoError(t, json.Unmarshal([]byte(text), &problem))
			details[strings.ReplaceAll(problem.Detail, id, "ID")] = true
		}
		require.Len(t, details, 1, request)
	}
}
