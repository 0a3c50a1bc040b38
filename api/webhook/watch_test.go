package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// callWatch calls a watch at url, with a client that may call loopback addresses.
func callWatch(t *testing.T, url string) Result {
	t.Helper()
	c := New(Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	defer c.Close()
	r, err := c.CallWatch(context.Background(), &WatchCall{
		ID: "msg_1", Resource: "https://hub.example.org/v1/resources/a", CallbackURL: url, Event: domain.ResourceUpdated, Changed: time.Unix(5, 6), Attempts: 3,
	})
	require.NoError(t, err)
	return r
}

func TestW16_TheBodyOfACallIsTheNotification(t *testing.T) {
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body) // the comparison below fails if the body cannot be read
	}))
	defer server.Close()
	require.Empty(t, callWatch(t, server.URL+"/hook").Answer.Error)
	require.Equal(t, `{"resource":"https://hub.example.org/v1/resources/a","callback":"`+server.URL+`/hook","event":"updated","timestamp":5,"delivery_attempts":3}`, string(body))
}

func TestW8_AnAnswerOtherThan200_IsAFailure(t *testing.T) {
	for _, status := range []int{201, 202, 204, 400, 404, 500} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		a := callWatch(t, server.URL).Answer
		require.Equal(t, status, a.Status)
		require.NotEmpty(t, a.Error, status)
		server.Close()
		a = callWatch(t, server.URL).Answer // the server was closed, so connections are refused
		require.Zero(t, a.Status)
		require.NotEmpty(t, a.Error)
	}
}

func TestARedirectOfAWatch_IsFollowedWithTheSameCall(t *testing.T) {
	hops, want := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != want || r.Method != http.MethodPost || r.Header.Get("Webhook-Id") != "msg_1" || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if left := strings.TrimPrefix(r.URL.Path, "/"); left != "" {
			hops++
			w.Header().Set("Location", "/"+left[1:])
			w.WriteHeader([]int{301, 302, 303, 307, 308}[hops%5])
		}
	}))
	defer server.Close()
	want = `{"resource":"https://hub.example.org/v1/resources/a","callback":"` + server.URL + `/xxxxx","event":"updated","timestamp":5,"delivery_attempts":3}`
	require.Equal(t, http.StatusOK, callWatch(t, server.URL+"/xxxxx").Answer.Status)
	require.Equal(t, 5, hops)
	want = strings.Replace(want, "/xxxxx", "/xxxxxx", 1)
	a := callWatch(t, server.URL+"/xxxxxx").Answer
	require.Zero(t, a.Status)
	require.Contains(t, a.Error, "more than 5 times")
}

func TestARedirectOfAWatch_MustLeadToAnAllowedURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := r.URL.Query().Get("to"); at != "" {
			w.Header().Set("Location", at)
		}
		w.WriteHeader(http.StatusFound)
	}))
	defer server.Close()
	for to, why := range map[string]string{
		"":                                "without a Location",
		":":                               "without a Location",
		"ftp://example.org/":              "may not be called",
		"http://me:pw@127.0.0.1/":         "may not be called",
		"http://169.254.169.254/latest":   "address that may not be called",
		"http://10.0.0.1/":                "address that may not be called",
		"http://[::ffff:169.254.169.254]": "address that may not be called",
	} {
		a := callWatch(t, server.URL+"/?to="+strings.ReplaceAll(to, "%", "%25")).Answer
		require.Zero(t, a.Status, to)
		require.Contains(t, a.Error, why, to)
		require.NotContains(t, a.Error, "pw")
	}
	a := callWatch(t, server.URL+"/?to=%2F%3Fto%3D").Answer // the server redirects to itself, and then without a target
	require.Zero(t, a.Status)
}

func TestARedirectOfAWatch_InACircleIsAFailure(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", map[string]string{"/a": "/b", "/b": "/a"}[r.URL.Path])
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	require.Contains(t, callWatch(t, server.URL+"/a").Answer.Error, "circle")
}
