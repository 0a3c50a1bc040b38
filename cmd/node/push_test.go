package node_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// pushSettings returns settings that permit a node to call receivers on
// loopback over HTTP.
func pushSettings(dir string) config.Config {
	cfg := settings(dir)
	cfg.Push.Allow, cfg.Push.InsecureHTTP = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true
	cfg.Push.Delays = []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, time.Minute}
	return cfg
}

// A receivedCall is a call that reached a test's receiver.
type receivedCall struct {
	method string
	header http.Header
	body   []byte
	event  map[string]any
}

// id returns the id of the event that the call contains.
func (c *receivedCall) id() string {
	id, _ := c.event["id"].(string)
	return id
}

// A callReceiver is a receiver that answers as a test specifies, and sends each
// call to a channel.
type callReceiver struct {
	*httptest.Server
	calls chan receivedCall

	mu     sync.Mutex
	answer func(*receivedCall) int
}

// startReceiver starts a receiver that runs until the test ends. answer returns
// the status for each call; if it is nil, the status is always 204.
func startReceiver(t *testing.T, answer func(*receivedCall) int) *callReceiver {
	t.Helper()
	r := &callReceiver{calls: make(chan receivedCall, 10_000), answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c := receivedCall{method: req.Method, header: req.Header}
		c.body, _ = io.ReadAll(req.Body)
		var n struct{ Event map[string]any }
		_ = json.Unmarshal(c.body, &n)
		c.event = n.Event
		status := http.StatusNoContent
		r.mu.Lock()
		f := r.answer
		r.mu.Unlock()
		if f != nil {
			status = f(&c)
		}
		w.WriteHeader(status)
		r.calls <- c
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *callReceiver) set(answer func(*receivedCall) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// awaitCalls waits until each event id in want has arrived in a call. It
// returns the ids in the order of the calls.
func (r *callReceiver) awaitCalls(t *testing.T, want ...string) []string {
	t.Helper()
	var got []string
	missing := slices.Clone(want)
	for len(missing) > 0 {
		select {
		case c := <-r.calls:
			got = append(got, c.id())
			missing = slices.DeleteFunc(missing, func(id string) bool { return id == c.id() })
		case <-t.Context().Done():
			t.Fatalf("%d calls did not come", len(missing))
		}
	}
	return got
}

// send sends a request with a body to a node. headers alternates names and
// values.
func send(t *testing.T, n *node.Node, method, path, contentType, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, n.URL()+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Actor-Id", "an-actor")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// createSubscription creates a subscription and returns its id.
func createSubscription(t *testing.T, n *node.Node, draft string) string {
	t.Helper()
	status, body := send(t, n, http.MethodPost, "/v1/subscriptions", "application/json", draft)
	require.Equal(t, http.StatusCreated, status, body)
	var created struct{ UUID string }
	require.NoError(t, json.Unmarshal([]byte(body), &created))
	return created.UUID
}

const cloudEvent = `{"specversion":"1.0","id":%q,"source":"/test","type":"made","data":{"n":1}}`

// publishEvents publishes events with these ids to the topic "events".
func publishEvents(t *testing.T, n *node.Node, ids ...string) {
	t.Helper()
	for _, id := range ids {
		status, body := send(t, n, http.MethodPost, "/v1/events", "application/cloudevents+json", fmt.Sprintf(cloudEvent, id))
		require.Equal(t, http.StatusAccepted, status, body)
		require.JSONEq(t, `{"accepted":1,"duplicates":0}`, body)
	}
}

func TestAnEvent_IsDeliveredWithASignature(t *testing.T) {
	r := startReceiver(t, nil)
	n, stop := start(t, pushSettings(""), node.Options{})
	key := base64.StdEncoding.EncodeToString([]byte("a key of twenty-four bytes or more"))
	signed := createSubscription(t, n, fmt.Sprintf(`{"callback_url":%q,"hmac_secret_key":"whsec_%s","attachments":{"half":{"type":"jmespath","expression":"data.n"}}}`, r.URL+"/signed", key))
	publishEvents(t, n, "1")
	c := <-r.calls
	require.Equal(t, http.MethodPost, c.method)
	require.Equal(t, map[string]any{"specversion": "1.0", "id": "1", "source": "/test", "type": "made", "data": map[string]any{"n": 1.0}}, c.event)
	var body struct {
		TransactionID  string         `json:"transaction_id"`
		SubscriptionID string         `json:"subscription_id"`
		Attachments    map[string]any `json:"attachments"`
	}
	require.NoError(t, json.Unmarshal(c.body, &body))
	require.Equal(t, signed, body.SubscriptionID)
	require.Equal(t, map[string]any{"half": 1.0}, body.Attachments)
	require.Equal(t, body.TransactionID, c.header.Get("Webhook-Id"))
	mac := hmac.New(sha256.New, []byte("a key of twenty-four bytes or more"))
	mac.Write([]byte(c.header.Get("Webhook-Id") + "." + c.header.Get("Webhook-Timestamp") + "."))
	mac.Write(c.body)
	require.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), c.header.Get("Webhook-Signature"))
	require.Empty(t, c.header.Get("Authorization"))

	// The original system's HMAC key signs the date and the digest.
	createSubscription(t, n, fmt.Sprintf(`{"topic":"others","callback_url":%q,"hmac_secret_key":"any key","method":"PUT"}`, r.URL))
	status, _ := send(t, n, http.MethodPost, "/v1/events?topic=others", "text/plain", "text", "Ce-Specversion", "1.0", "Ce-Id", "2", "Ce-Source", "/test", "Ce-Type", "told")
	require.Equal(t, http.StatusAccepted, status)
	c = <-r.calls
	require.Equal(t, http.MethodPut, c.method)
	require.Equal(t, map[string]any{"specversion": "1.0", "id": "2", "source": "/test", "type": "told", "datacontenttype": "text/plain", "data_base64": "dGV4dA=="}, c.event)
	mac = hmac.New(sha256.New, []byte("any key"))
	mac.Write([]byte("date: " + c.header.Get("Date") + "\ndigest: " + c.header.Get("Digest")))
	require.Contains(t, c.header.Get("Authorization"), `signature="`+base64.StdEncoding.EncodeToString(mac.Sum(nil))+`"`)
	require.Empty(t, c.header.Get("Webhook-Signature"))
	require.NoError(t, stop())
}

func TestALargePayload_IsDeliveredUnchanged(t *testing.T) {
	r := startReceiver(t, nil)
	n, stop := start(t, pushSettings(t.TempDir()), node.Options{})
	createSubscription(t, n, fmt.Sprintf(`{"callback_url":%q,"jmespath_query":"type == 'made' && data == null"}`, r.URL))
	data := strings.Repeat("x", 1_000_000)
	status, body := send(t, n, http.MethodPost, "/v1/events", structuredEvent, fmt.Sprintf(`{"specversion":"1.0","id":"1","source":"/test","type":"made","data":%q}`, data))
	require.Equal(t, http.StatusAccepted, status, body)
	c := <-r.calls
	require.Equal(t, data, c.event["data"])
	require.NoError(t, stop())
}

func TestADeadReceiver_GetsRetriesWhileOthersReceive(t *testing.T) {
	down := startReceiver(t, func(*receivedCall) int { return http.StatusServiceUnavailable })
	up := startReceiver(t, nil)
	n, stop := start(t, pushSettings(t.TempDir()), node.Options{})
	createSubscription(t, n, fmt.Sprintf(`{"callback_url":%q}`, down.URL))
	createSubscription(t, n, fmt.Sprintf(`{"callback_url":%q}`, up.URL))
	var ids []string
	for i := range 50 {
		ids = append(ids, fmt.Sprint(i))
	}
	publishEvents(t, n, ids...)
	require.ElementsMatch(t, ids, up.awaitCalls(t, ids...))
	attempts := make(map[string][]string) // attempt numbers by event id
	for range 3 * len(ids) {
		c := <-down.calls
		attempts[c.id()] = append(attempts[c.id()], c.header.Get("X-Dss-Notify-Attempt"))
	}
	for _, id := range ids {
		require.Equal(t, []string{"0", "1", "2"}, attempts[id], id)
	}
	require.NoError(t, stop())
}

func TestAReceiverThatIsGone_IsShownToItsOwner(t *testing.T) {
	r := startReceiver(t, func(*receivedCall) int { return http.StatusGone })
	n, stop := start(t, pushSettings(""), node.Options{})
	id := createSubscription(t, n, fmt.Sprintf(`{"callback_url":%q}`, r.URL))
	shows := func(want string) {
		require.Eventually(t, func() bool {
			_, body := send(t, n, http.MethodGet, "/v1/subscriptions/"+id, "", "")
			return strings.Contains(body, want)
		}, 30*time.Second, 10*time.Millisecond, want)
	}
	shows(`"delivery":{"state":"active","failures":0,`)
	publishEvents(t, n, "1")
	<-r.calls
	shows(`"delivery":{"state":"gone","failures":1,"waiting":1,`)
	r.set(nil)
	status, body := send(t, n, http.MethodPost, "/v1/subscriptions/"+id+"/resume", "", "")
	require.Equal(t, http.StatusOK, status, body)
	shows(`"delivery":{"state":"active","failures":0,"waiting":0,"delivered":1,`)
	require.NoError(t, stop())
}

func TestARestart_LosesNothing(t *testing.T) {
	r := startReceiver(t, func(*receivedCall) int { return http.StatusServiceUnavailable })
	dir := t.TempDir()
	n, stop := start(t, pushSettings(dir), node.Options{})
	id := createSubscription(t, n, fmt.Sprintf(`{"callback_url":%q,"hmac_secret_key":"kept"}`, r.URL))
	publishEvents(t, n, "failed")
	for range 3 {
		<-r.calls // the next attempt is due one minute later
	}
	status, body := send(t, n, http.MethodPost, "/v1/subscriptions/"+id+"/pause", "", "")
	require.Equal(t, http.StatusOK, status, body)
	publishEvents(t, n, "waiting")
	require.NoError(t, stop())

	r.set(nil)
	n, stop = start(t, pushSettings(dir), node.Options{})
	publishEvents(t, n, "later")
	status, body = send(t, n, http.MethodPost, "/v1/subscriptions/"+id+"/resume", "", "")
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, []string{"later", "waiting"}, slices.Sorted(slices.Values(r.awaitCalls(t, "waiting", "later"))))
	require.NoError(t, stop())
}

// dataEvent returns the announcement of event n for the tests' actor.
func dataEvent(n int) string {
	return fmt.Sprintf(`[{"id":"00000000-0000-4000-8000-%012d","recipient":"an-actor","origin":"Charges","contentType":"c","documentType":"d","supportsBundling":true,"weight":1}]`, n)
}

func TestDataAvailable_OneCallAnnouncesAllNewData(t *testing.T) {
	free := make(chan struct{})
	r := startReceiver(t, func(*receivedCall) int { <-free; return http.StatusOK })
	dir := t.TempDir()
	n, stop := start(t, pushSettings(dir), node.Options{})
	announce := func(from, to int) {
		for i := from; i <= to; i++ {
			status, body := send(t, n, http.MethodPost, "/v1/data-available", "application/json", dataEvent(i))
			require.Equal(t, http.StatusAccepted, status, body)
		}
	}
	announce(1, 3) // causes no call, because the actor has no subscription yet
	createSubscription(t, n, fmt.Sprintf(`{"topic":"data-available","callback_url":%q}`, r.URL))
	announce(4, 4)
	free <- struct{}{}
	c := <-r.calls
	require.Equal(t, map[string]any{
		"specversion": "1.0", "id": "an-actor/4", "source": "/v1/queues", "type": "messagehub.data-available", "subject": "an-actor",
		"datacontenttype": "application/json", "data": map[string]any{"actor": "an-actor", "watermark": 4.0},
	}, c.event)
	announce(5, 5)
	free <- struct{}{}
	c = <-r.calls
	require.Equal(t, "an-actor/5", c.id())

	status, _ := send(t, n, http.MethodPost, "/v1/events?topic=data-available", structuredEvent, fmt.Sprintf(cloudEvent, "1"))
	require.Equal(t, http.StatusBadRequest, status)
	require.NoError(t, stop())

	// One call must announce everything that was saved while calls failed or
	// the hub was down.
	close(free)
	r.set(func(*receivedCall) int { return http.StatusServiceUnavailable })
	n, stop = start(t, pushSettings(dir), node.Options{})
	announce(6, 6)
	c = <-r.calls
	require.Equal(t, "an-actor/6", c.id())
	require.NoError(t, stop())
	cfg := pushSettings(dir)
	n, stop = start(t, cfg, node.Options{PullOnly: true})
	announce(7, 20)
	require.NoError(t, stop())
	r.set(nil)
	_, stop = start(t, cfg, node.Options{})
	got := r.awaitCalls(t, "an-actor/20")
	require.Less(t, len(got), 10, "%v", got)
	require.NoError(t, stop())
}

const structuredEvent = "application/cloudevents+json"
