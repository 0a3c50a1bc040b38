package node_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// failedDeliveries returns settings of a data folder that contains a delivery
// of each event. Each delivery has failed once and waits for a retry.
func failedDeliveries(t *testing.T, ids ...string) config.Config {
	t.Helper()
	cfg := pushSettings(t.TempDir())
	cfg.Push.Delays = []time.Duration{0, time.Minute, time.Minute}
	r := startReceiver(t, func(*receivedCall) int { return http.StatusServiceUnavailable })
	n, stop := start(t, cfg, node.Options{})
	createSubscription(t, n, `{"callback_url":"`+r.URL+`"}`)
	publishEvents(t, n, ids...)
	r.awaitCalls(t, ids...)
	require.NoError(t, stop())
	return cfg
}

// A notifyResult is the result of a call of notify.
type notifyResult struct {
	report node.NotifyReport
	err    error
	took   time.Duration
	bodies []string // bodies of the calls that reached the receivers
}

// notify calls node.Notify in a synctest bubble. handle serves each connection
// to a receiver.
func notify(t *testing.T, ctx func(context.Context) context.Context, cfg config.Config, duration time.Duration, handle func(net.Conn)) (got notifyResult) {
	t.Helper()
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		var serving sync.WaitGroup
		var mu sync.Mutex
		bubble := time.Now()
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			serving.Go(func() {
				defer far.Close()
				for r := bufio.NewReader(far); ; {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					body, err := io.ReadAll(req.Body)
					if err != nil {
						return
					}
					mu.Lock()
					got.bodies = append(got.bodies, string(body))
					mu.Unlock()
					handle(far)
				}
			})
			return near, nil
		}
		got.report, got.err = node.Notify(ctx(t.Context()), cfg, node.Options{
			Dial: dial, Clock: func() time.Time { return began.Add(time.Since(bubble)) },
		}, duration)
		got.took = time.Since(bubble)
		serving.Wait()
	})
	return got
}

func sameContext(ctx context.Context) context.Context { return ctx }

func answering(status string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n\r\n") }
}

func TestNotify_MakesTheCallsThatAreDue(t *testing.T) {
	cfg := failedDeliveries(t, "1", "2", "3")
	got := notify(t, sameContext, cfg, 5*time.Minute, answering("204 No Content"))
	require.NoError(t, got.err)
	require.Equal(t, node.NotifyReport{Calls: 3}, got.report)
	require.Len(t, got.bodies, 3)
	require.Less(t, got.took, 5*time.Minute)
	require.Greater(t, got.took, 5*time.Minute-node.NotifyReserve(&cfg)-time.Second)

	got = notify(t, sameContext, cfg, 5*time.Minute, answering("204 No Content"))
	require.NoError(t, got.err)
	require.Zero(t, got.report, "the outcomes are stored")
}

func TestNotify_CountsFailures(t *testing.T) {
	cfg := failedDeliveries(t, "1")
	for _, want := range []node.NotifyReport{{Calls: 2, Failed: 2}, {}} { // failedDeliveries has already made the first of three attempts
		got := notify(t, sameContext, cfg, 5*time.Minute, answering("500 Internal Server Error"))
		require.NoError(t, got.err)
		require.Equal(t, want, got.report)
	}
}

func TestNotify_BeginsNoCallThatWouldOutliveIt(t *testing.T) {
	cfg := failedDeliveries(t, "1")
	hang := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	duration := node.NotifyReserve(&cfg) + 2*time.Minute
	got := notify(t, sameContext, cfg, duration, hang)
	require.NoError(t, got.err)
	require.Equal(t, node.NotifyReport{Calls: 1, Failed: 1}, got.report)
	require.LessOrEqual(t, got.took, duration)
}

func TestNotify_EndsWithItsContext(t *testing.T) {
	cfg := failedDeliveries(t, "1")
	got := notify(t, func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(10*time.Second, cancel)
		return ctx
	}, cfg, 5*time.Minute, answering("204 No Content"))
	require.NoError(t, got.err)
	require.Less(t, got.took, 25*time.Second)
}

func TestNotify_RefusesWhatItCannotDo(t *testing.T) {
	cfg := pushSettings(t.TempDir())
	_, err := node.Notify(t.Context(), cfg, node.Options{}, 5*time.Minute)
	require.ErrorAs(t, err, new(*node.NoDataError))

	_, err = node.Notify(t.Context(), cfg, node.Options{}, node.NotifyReserve(&cfg))
	require.ErrorContains(t, err, "want more than 1m10s: a call takes up to 30s (push.timeout)")

	_, stop := start(t, cfg, node.Options{})
	_, err = node.Notify(t.Context(), cfg, node.Options{}, 5*time.Minute)
	require.ErrorAs(t, err, new(*node.InUseError))
	require.NoError(t, stop())

	cfg.Data = strings.Repeat("x", 300)
	_, err = node.Notify(t.Context(), cfg, node.Options{}, 5*time.Minute)
	require.Error(t, err)
	require.False(t, errors.As(err, new(*node.InUseError)))
}
