package brokerclient_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
)

// A transportFunc replaces the network, because tests with fake time must not use connections.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newHandlerClient returns an HTTP client whose requests are served by handler.
func newHandlerClient(handler http.HandlerFunc) *http.Client {
	return &http.Client{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		handler(w, r)
		return w.Result(), nil
	})}
}

func newClient(t *testing.T, o brokerclient.Options) *brokerclient.Client {
	t.Helper()
	o.URL = "https://hub.example"
	c, err := brokerclient.New(o)
	require.NoError(t, err)
	return c
}

func TestARequest_IsRepeatedWithLongerPausesUntilItsBudgetIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		jitter := 0.0
		c := newClient(t, brokerclient.Options{
			Budget: 20 * time.Second, Jitter: func() float64 { return jitter },
			HTTP: newHandlerClient(func(w http.ResponseWriter, r *http.Request) {
				at = append(at, time.Since(began))
				respond(503, `{"title":"Away"}`)(w, r)
			}),
		})
		const ms = time.Millisecond
		_, err := c.Message(t.Context(), "prices", "m0.1")
		require.EqualError(t, err, "the request was sent 13 times in 20s: Away (503)")
		require.Equal(t, []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 3150 * ms, 5650 * ms}, at[:8])
		require.Equal(t, 2500*ms, at[12]-at[11], "the longest pause")

		at, began, jitter = nil, time.Now(), 0.5
		_, err = c.Message(t.Context(), "prices", "m0.1")
		require.Error(t, err)
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms}, at[:3])
	})
}

func TestARequest_IsNotRepeatedBeforeTheHubAsksForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		c := newClient(t, brokerclient.Options{Jitter: func() float64 { return 0 }, HTTP: newHandlerClient(func(w http.ResponseWriter, r *http.Request) {
			if at = append(at, time.Since(began)); len(at) == 1 {
				respond(503, "{}", "Retry-After", "30")(w, r)
				return
			}
			respond(503, "{}", "Retry-After", "40")(w, r)
		})})
		_, err := c.Message(t.Context(), "prices", "m0.1")
		require.Error(t, err)
		require.Equal(t, []time.Duration{0, 30*time.Second + 50*time.Millisecond}, at, "the second pause would exceed the budget")
		require.Equal(t, at[1], time.Since(began), "it does not wait in vain")
	})
}

func TestARequest_IsNotRepeatedWithoutABudget(t *testing.T) {
	c, h := serve(t, brokerclient.Options{Budget: -1}, respond(503, `{"title":"Away"}`))
	require.EqualError(t, c.Dequeue(t.Context(), "prices", "shop", "b-1"), "Away (503)")
	require.Len(t, h.received(), 1)
}

func TestARequest_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, brokerclient.Options{HTTP: newHandlerClient(respond(503, `{"title":"Away"}`, "Retry-After", "10"))})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Message(ctx, "prices", "m0.1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "Away (503)")
		require.Equal(t, time.Second, time.Since(began))
	})
}

// The request for a message without an ID was never sent. Publish repeats it.
func TestPublish_RepeatsARequestThatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		dial := error(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
		c := newClient(t, brokerclient.Options{HTTP: &http.Client{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			if n++; n < 3 {
				return nil, dial
			}
			w := httptest.NewRecorder()
			accepted(w, r)
			return w.Result(), nil
		})}})
		_, err := c.Publish(t.Context(), "prices", &brokerclient.Message{})
		require.NoError(t, err)
		require.Equal(t, 3, n)

		n, dial = 0, &net.DNSError{Err: "no such host", Name: "hub.example", IsNotFound: true}
		_, err = c.Publish(t.Context(), "prices", &brokerclient.Message{ID: "one"})
		require.Error(t, err, "the name of the hub is wrong")
		require.Equal(t, 1, n)

		n, dial = 0, errors.New("connection reset")
		_, err = c.Publish(t.Context(), "prices", &brokerclient.Message{})
		require.Error(t, err)
		require.Equal(t, 1, n)
	})
}
