package node_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// A watchCall is the path and the body of a received notification.
type watchCall struct {
	path string
	body map[string]any
}

// startCallbackServer starts a server for callbacks. It answers 200 to /ok and
// 204 to /none. Any other path begins with a redirect status, such as /302/ok;
// the server redirects with this status to the rest of the path.
func startCallbackServer(t *testing.T) (url string, calls chan watchCall) {
	calls = make(chan watchCall, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var n map[string]any
		_ = json.Unmarshal(body, &n)
		switch first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); {
		case r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json":
			w.WriteHeader(http.StatusBadRequest)
		case first == "ok":
			calls <- watchCall{r.URL.Path, n}
		case first == "none":
			w.WriteHeader(http.StatusNoContent)
		case len(first) == 3:
			status := map[string]int{"301": 301, "302": 302, "303": 303, "307": 307, "308": 308}[first]
			w.Header().Set("Location", "/"+rest)
			w.WriteHeader(status)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// createWatch creates a watch on a document, and returns the path of the watch.
func createWatch(t *testing.T, n *node.Node, document, callback string) string {
	t.Helper()
	body := `{"resource": "` + n.URL() + `/v1/resources/` + document + `", "callback": "` + callback + `"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.URL()+"/v1/_notifications/watch?absent=allow", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Actor-Id", "watcher")
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, resp.StatusCode, string(text))
	return resp.Header.Get("Location")
}

func putDocument(t *testing.T, n *node.Node, name, body string) {
	t.Helper()
	status, answer := send(t, n, http.MethodPut, "/v1/resources/"+name, "application/json", body, "X-Actor-Id", "writer")
	require.Contains(t, []int{http.StatusCreated, http.StatusNoContent}, status, answer)
}

func watchOf(t *testing.T, n *node.Node, path string) map[string]any {
	t.Helper()
	status, body := send(t, n, http.MethodGet, path, "", "", "X-Actor-Id", "watcher")
	require.Equal(t, http.StatusOK, status, body)
	var w map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &w))
	return w
}

func TestAWatch_IsCalledWhenItsDocumentChanges(t *testing.T) {
	url, calls := startCallbackServer(t)
	cfg := brokerSettings(t.TempDir())
	n, stop := start(t, cfg, node.Options{})
	putDocument(t, n, "prices", `{"valid": 1}`)
	path := createWatch(t, n, "prices", url+"/ok")
	began := time.Now()
	putDocument(t, n, "prices", `{"valid": 2}`)
	c := <-calls
	require.InDelta(t, time.Now().Unix(), c.body["timestamp"], 5)
	delete(c.body, "timestamp")
	require.Equal(t, watchCall{"/ok", map[string]any{
		"resource": n.URL() + "/v1/resources/prices", "callback": url + "/ok", "event": "updated", "delivery_attempts": 0.0,
	}}, c)
	status, body := send(t, n, http.MethodDelete, "/v1/resources/prices", "", "", "X-Actor-Id", "writer")
	require.Equal(t, http.StatusNoContent, status, body)
	require.Equal(t, "deleted", (<-calls).body["event"])
	require.Eventually(t, func() bool { return watchOf(t, n, path)["count_delivered"] == 2.0 }, 10*time.Second, 5*time.Millisecond)
	w := watchOf(t, n, path)
	require.InDelta(t, began.Unix(), w["created"], 5)
	delete(w, "created")
	require.Equal(t, map[string]any{
		"resource": n.URL() + "/v1/resources/prices", "callback": url + "/ok", "count_triggered": 2.0, "count_delivered": 2.0, "count_errored": 0.0,
	}, w)
	require.NoError(t, stop())

	// The next node listens at another address. The notifications of the stored
	// watches must contain the URL in the setting watches.base.
	cfg.Watches.Base = "https://hub.example.org"
	n, stop = start(t, cfg, node.Options{})
	putDocument(t, n, "prices", `{"valid": 3}`)
	putDocument(t, n, "prices", `{"valid": 4}`)
	require.Equal(t, "https://hub.example.org/v1/resources/prices", (<-calls).body["resource"])
	status, body = send(t, n, http.MethodDelete, path, "", "", "X-Actor-Id", "watcher")
	require.Equal(t, http.StatusNoContent, status, body)
	status, body = send(t, n, http.MethodDelete, path, "", "", "X-Actor-Id", "watcher")
	require.Equal(t, http.StatusNotFound, status, body)
	require.NoError(t, stop())
}

func TestW9_RedirectsAreFollowedWithTheSamePost(t *testing.T) {
	url, calls := startCallbackServer(t)
	cfg := brokerSettings(t.TempDir())
	cfg.Watches.Attempts = 1
	n, stop := start(t, cfg, node.Options{})
	for callback, isTold := range map[string]bool{
		"/301/302/303/307/308/ok":     true,
		"/301/302/303/307/308/301/ok": false, // one redirect more than the hub follows
		"/302":                        false, // redirects to /, which the server answers with 404
		"/none":                       false,
		"/302/none":                   false,
	} {
		document := strings.ReplaceAll(strings.Trim(callback, "/"), "/", ".")
		putDocument(t, n, document, `1`)
		path := createWatch(t, n, document, url+callback)
		putDocument(t, n, document, `2`)
		counter := map[bool]string{true: "count_delivered", false: "count_errored"}[isTold]
		require.Eventually(t, func() bool { return watchOf(t, n, path)[counter] == 1.0 }, 10*time.Second, 5*time.Millisecond, callback)
		if isTold {
			require.Equal(t, url+callback, (<-calls).body["callback"])
		}
	}
	require.NoError(t, stop())
}

func TestARedirectToAnAddressThatMayNotBeCalled_IsAFailure(t *testing.T) {
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", map[string]string{
			"/metadata": "http://169.254.169.254/latest", "/circle": "/circle", "/file": "file:///etc/passwd", "/user": "http://a:b@127.0.0.1/", "/missing": "",
		}[r.URL.Path])
		w.WriteHeader(http.StatusFound)
	}))
	defer redirecting.Close()
	cfg := brokerSettings(t.TempDir())
	cfg.Watches.Attempts = 1
	n, stop := start(t, cfg, node.Options{})
	for _, callback := range []string{"metadata", "circle", "file", "user", "missing"} {
		putDocument(t, n, callback, `1`)
		path := createWatch(t, n, callback, redirecting.URL+"/"+callback)
		putDocument(t, n, callback, `2`)
		require.Eventually(t, func() bool { return watchOf(t, n, path)["count_errored"] == 1.0 }, 10*time.Second, 5*time.Millisecond, callback)
	}
	require.NoError(t, stop())
}

// watchBundle peeks a bundle, creates a watch on it, and returns the request
// body that created the watch.
func watchBundle(t *testing.T, n *node.Node, id, callback string) (draft string) {
	t.Helper()
	status, body := send(t, n, http.MethodPost, "/v1/data-available", "application/json", `[{"id":"be4bc634-db0f-4b83-8d11-e4d38c5f2628","recipient":"watcher",
		"origin":"Charges","contentType":"ChargePriceList","documentType":"D18","supportsBundling":true,"weight":1}]`)
	require.Equal(t, http.StatusAccepted, status, body)
	status, body = send(t, n, http.MethodGet, "/v1/peek?bundleId="+id, "", "", "X-Actor-Id", "watcher")
	require.Equal(t, http.StatusOK, status, body)

	draft = `{"resource": "` + n.URL() + `/v1/bundles/` + id + `", "callback": "` + callback + `"}`
	status, body = send(t, n, http.MethodPost, "/v1/_notifications/watch", "application/json", draft, "X-Actor-Id", "other")
	require.Equal(t, http.StatusNotFound, status, body)
	status, body = send(t, n, http.MethodPost, "/v1/_notifications/watch", "application/json", draft, "X-Actor-Id", "watcher")
	require.Equal(t, http.StatusOK, status, body) // the response is the new watch, because the client followed the redirect
	return draft
}

const watchedBundle = "2f732863-0bb4-4bd2-a8e3-2089d92b473f"

func TestAWatchOfABundle_IsCalledWhenItIsDequeued(t *testing.T) {
	url, calls := startCallbackServer(t)
	n, stop := start(t, brokerSettings(t.TempDir()), node.Options{})
	draft := watchBundle(t, n, watchedBundle, url+"/ok")
	status, body := send(t, n, http.MethodDelete, "/v1/dequeue/"+watchedBundle, "", "", "X-Actor-Id", "watcher")
	require.Equal(t, http.StatusOK, status, body)
	c := <-calls
	require.Equal(t, n.URL()+"/v1/bundles/"+watchedBundle, c.body["resource"])
	require.Equal(t, "updated", c.body["event"])
	status, body = send(t, n, http.MethodPost, "/v1/_notifications/watch", "application/json", draft, "X-Actor-Id", "watcher")
	require.Equal(t, http.StatusNotFound, status, body) // a dequeued bundle cannot be watched
	require.NoError(t, stop())
}

func TestAWatchOfABundle_IsCalledOnceWhenTheRetentionRemovesIt(t *testing.T) {
	url, calls := startCallbackServer(t)
	cfg := brokerSettings(t.TempDir())
	cfg.Retention = time.Minute
	var ahead atomic.Int64
	n, stop := start(t, cfg, node.Options{
		SweepEvery: 20 * time.Millisecond, Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	})
	watchBundle(t, n, watchedBundle, url+"/ok")
	status, body := send(t, n, http.MethodGet, "/v1/_notifications/watch", "", "", "X-Actor-Id", "watcher")
	require.Equal(t, http.StatusOK, status, body)
	var list struct{ Items []struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.Len(t, list.Items, 1)
	status, body = send(t, n, http.MethodDelete, "/v1/dequeue/"+watchedBundle, "", "", "X-Actor-Id", "watcher")
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "updated", (<-calls).body["event"])

	ahead.Store(int64(time.Minute))
	c := <-calls
	require.Equal(t, "deleted", c.body["event"])
	require.Equal(t, n.URL()+"/v1/bundles/"+watchedBundle, c.body["resource"])
	path := "/v1/_notifications/watch/" + list.Items[0].ID
	require.Eventually(t, func() bool { return watchOf(t, n, path)["count_delivered"] == 2.0 }, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, 2.0, watchOf(t, n, path)["count_triggered"])
	require.NoError(t, stop())
	require.Empty(t, calls)
}
