package hubclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/hubclient"
)

// consume runs a consumer until the hub has used all its steps, and the consumer waits for more
// data. It returns the ids of the bundles that were received completely.
func (h *faultyHub) consume(handle hubclient.Handler) (got []string) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	h.steps = append(h.steps, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	require.NoError(h.t, h.client.Consume(ctx, actor, func(ctx context.Context, b *hubclient.Bundle) error {
		_, err := io.Copy(io.Discard, b)
		if err == nil {
			got = append(got, b.ID)
			if handle != nil {
				err = handle(ctx, b)
			}
		}
		return err
	}))
	return got
}

const peekFirst = "GET /v1/peek?bundleId=bundle-1&wait=30s"

func TestConsume_RepeatsAPeekWhoseResponseWasLost(t *testing.T) {
	h := newFaultyHub(t, dropConnection, bundle("bundle-1", body, len(body)), ok)
	got := h.consume(nil)
	require.Equal(t, []string{"bundle-1"}, got)
	require.Equal(t, []string{peekFirst, peekFirst, "DELETE /v1/dequeue/bundle-1"}, h.requests()[:3])
}

func TestConsume_HandlesTheOpenBundle(t *testing.T) {
	h := newFaultyHub(t, problem(409), bundle("other", body, len(body)), ok)
	got := h.consume(nil)
	require.Equal(t, []string{"other"}, got)
	require.Equal(t, []string{peekFirst, "GET /v1/peek", "DELETE /v1/dequeue/other", "GET /v1/peek?bundleId=bundle-3&wait=30s"}, h.requests())
}

func TestConsume_FailsIfTheOpenBundleHasAnotherFormat(t *testing.T) {
	h := newFaultyHub(t, problem(409), problem(409))
	err := h.client.Consume(t.Context(), actor, nil)
	require.True(t, isStatus(err, 409))
}

func TestConsume_ContinuesIfAnotherConsumerDequeuedTheBundle(t *testing.T) {
	t.Run("before it does", func(t *testing.T) {
		h := newFaultyHub(t, bundle("bundle-1", body, len(body)), problem(404), problem(409))
		h.consume(nil)
		require.Equal(t, "GET /v1/peek", h.requests()[3], "the id is used up")
	})
	t.Run("while it is read", func(t *testing.T) {
		h := newFaultyHub(t, bundle("bundle-1", body, 5), problem(410))
		got := h.consume(nil)
		require.Empty(t, got)
	})
}

func TestConsume_DequeuesOnlyCompletelyReceivedBundles(t *testing.T) {
	h := newFaultyHub(t, bundle("bundle-1", body, 5), taggedBundle("bundle-1", `"u"`, body, len(body)), nil)
	ctx, cancel := context.WithCancel(t.Context())
	h.steps[2] = func(w http.ResponseWriter, r *http.Request) { noData(w, r); cancel() }
	require.NoError(t, h.client.Consume(ctx, actor, func(context.Context, *hubclient.Bundle) error { return nil }))
	require.Equal(t, []string{peekFirst, "GET /v1/bundles/bundle-1", peekFirst}, h.requests())
}

func TestConsume_HonoursRetryAfter(t *testing.T) {
	for _, status := range []int{429, 502, 503, 504} {
		h := newFaultyHub(t, problem(status, "Retry-After", "30"), bundle("bundle-1", body, len(body)), problem(status, "Retry-After", "20"), ok)
		got := h.consume(nil)
		require.Len(t, got, 1, "it is not handled again because its dequeue was repeated")
		require.Equal(t, []time.Duration{30*time.Second + 50*time.Millisecond, 20*time.Second + 50*time.Millisecond}, h.clock.pauses())
	}
}

func TestConsume_FailsIfTheHubRefusesTheRequest(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 410, 500} {
		h := newFaultyHub(t, problem(status))
		err := h.client.Consume(t.Context(), actor, nil)
		require.True(t, isStatus(err, status))
	}
}

func TestConsume_GivesUpWhenItsPatienceIsExhausted(t *testing.T) {
	h := newFaultyHub(t, problem(503, "Retry-After", "60"), problem(503, "Retry-After", "60"), problem(503, "Retry-After", "60"))
	c := &hubclient.Consumer{Client: h.client, Actor: actor, Patience: 150 * time.Second}
	err := c.Run(t.Context(), nil)
	require.True(t, isStatus(err, 503))
	require.ErrorContains(t, err, "attempts have failed for 2m0.15s")
}

func TestConsume_PausesGrowWhileAHandlerFails(t *testing.T) {
	whole := bundle("bundle-1", body, len(body))
	h := newFaultyHub(t, whole, whole, whole, whole, ok)
	calls := 0
	got := h.consume(func(context.Context, *hubclient.Bundle) error {
		switch calls++; calls {
		case 1:
			return errors.New("no room")
		case 2:
			panic("no room")
		case 3:
			return io.EOF
		}
		return nil
	})
	require.Len(t, got, 4)
	require.Equal(t, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}, h.clock.pauses())
}

func TestConsume_ReportsAPanicAndLeavesTheBundleOpen(t *testing.T) {
	h := newFaultyHub(t, bundle("bundle-1", body, len(body)))
	c := &hubclient.Consumer{Client: h.client, Actor: actor, Patience: time.Nanosecond}
	err := c.Run(t.Context(), func(context.Context, *hubclient.Bundle) error { panic("no room") })
	e, ok := errors.AsType[*hubclient.PanicError](err)
	require.True(t, ok)
	require.Equal(t, "no room", e.Value)
	require.Contains(t, string(e.Stack), "consume_test.go")
	require.Equal(t, []string{peekFirst}, h.requests())
}

func TestConsume_PausesIfAnEmptyResponseArrivesEarly(t *testing.T) {
	h := newFaultyHub(t, noData, noData, nil, noData)
	h.steps[2] = func(w http.ResponseWriter, r *http.Request) {
		h.clock.jump(30 * time.Second)
		noData(w, r)
	}
	h.consume(nil)
	require.Equal(t, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 50 * time.Millisecond}, h.clock.pauses())
}

func TestConsume_IsNotDelayedByAClockJump(t *testing.T) {
	h := newFaultyHub(t, nil, nil, bundle("bundle-1", body, len(body)), ok)
	for i, jump := range []time.Duration{1000 * time.Hour, -1000 * time.Hour} {
		h.steps[i] = func(w http.ResponseWriter, r *http.Request) {
			h.clock.jump(jump)
			problem(503, "Retry-After", "1")(w, r)
		}
	}
	require.Len(t, h.consume(nil), 1)
	require.Equal(t, []time.Duration{time.Second + 50*time.Millisecond, time.Second + 100*time.Millisecond}, h.clock.pauses())
}

func TestConsume_LogsFailuresWithoutTheToken(t *testing.T) {
	var log bytes.Buffer
	h := newFaultyHub(t, problem(503), noData)
	client := h.client.With(func(o *hubclient.Options) {
		o.Token = func(context.Context) (string, error) { return "s3cret", nil }
	})
	ctx, cancel := context.WithCancel(t.Context())
	h.steps[1] = func(w http.ResponseWriter, r *http.Request) { noData(w, r); cancel() }
	c := &hubclient.Consumer{Client: client, Actor: actor, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, c.Run(ctx, nil))
	require.Contains(t, log.String(), "A detail.")
	require.NotContains(t, log.String(), "s3cret")
}

func TestConsume_EndsWhileItWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := newFaultyHub(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	require.NoError(t, h.client.Consume(ctx, actor, nil))
}

func TestConsume_EndsIfOnRetryReturnsFalse(t *testing.T) {
	var failures []error
	h := newFaultyHubWith(t, hubclient.Options{OnRetry: func(err error, _ time.Duration) bool {
		failures = append(failures, err)
		return len(failures) < 3
	}}, problem(503), bundle("bundle-1", body, len(body)), problem(429), problem(429))
	require.True(t, isStatus(h.client.Consume(t.Context(), actor, func(context.Context, *hubclient.Bundle) error { return nil }), 429))
	require.Len(t, failures, 3)
}

func TestConsume_ReportsDequeuedBundles(t *testing.T) {
	h := newFaultyHub(t, bundle("bundle-1", body, len(body)), problem(404), bundle("bundle-2", body, len(body)), ok, problem(403))
	var dequeued []string
	c := &hubclient.Consumer{Client: h.client, Actor: actor, Dequeued: func(b *hubclient.Bundle) { dequeued = append(dequeued, b.ID) }}
	require.True(t, isStatus(c.Run(t.Context(), func(context.Context, *hubclient.Bundle) error { return nil }), 403))
	require.Equal(t, []string{"bundle-2"}, dequeued, "another has dequeued the first")
}

func TestConsume_FetchesABundleAgainIfItsContentChanged(t *testing.T) {
	whole := bundle("bundle-1", body, len(body))
	h := newFaultyHub(t, whole, problem(409), whole, ok)
	require.Equal(t, []string{"bundle-1", "bundle-1"}, h.consume(nil))
}

func TestConsume_WaitsForAToken(t *testing.T) {
	calls := 0
	h := newFaultyHubWith(t, hubclient.Options{Token: func(context.Context) (string, error) {
		if calls++; calls == 1 {
			return "", errors.New("the issuer is away")
		}
		return "token", nil
	}}, bundle("bundle-1", body, len(body)), ok)
	require.Len(t, h.consume(nil), 1)
}
