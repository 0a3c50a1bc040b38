package brokerclient_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
)

// allTokens contains more tokens than any single request requires.
var allTokens = brokerclient.Credentials{
	AdminToken: "t-admin", ChannelToken: "t-channel", ProducerID: "shop", ProducerToken: "t-producer", ConsumerToken: "t-consumer",
}

// A receivedRequest is a request that a hub has received.
type receivedRequest struct {
	method, target string
	header         http.Header
	body           string
}

// A fakeHub records requests. It responds to them with its answers in order, and repeats the last
// answer.
type fakeHub struct {
	answers []http.HandlerFunc

	mu       sync.Mutex
	requests []receivedRequest
}

// received returns all requests that the hub has received so far.
func (h *fakeHub) received() []receivedRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	h.mu.Lock()
	h.requests = append(h.requests, receivedRequest{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
	answer := h.answers[min(len(h.requests), len(h.answers))-1]
	h.mu.Unlock()
	answer(w, r)
}

// respond returns a handler that responds with a status and a JSON body. namesAndValues are
// headers: names and values alternately.
func respond(status int, body string, namesAndValues ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status >= 400 {
			w.Header().Set("Content-Type", "application/problem+json")
		}
		for i := 0; i < len(namesAndValues); i += 2 {
			w.Header().Set(namesAndValues[i], namesAndValues[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangUp closes the connection without a response.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.Close()
}

// serve starts a hub that responds with answers, and returns a client of it and the hub.
func serve(t *testing.T, o brokerclient.Options, answers ...http.HandlerFunc) (*brokerclient.Client, *fakeHub) {
	t.Helper()
	h := &fakeHub{answers: answers}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o.URL = server.URL + o.URL
	if o.Jitter == nil {
		o.Jitter = func() float64 { return 0 }
	}
	c, err := brokerclient.New(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, h
}
