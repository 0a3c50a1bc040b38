package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

func TestDemo_FailsIfTheHubLosesEvents(t *testing.T) {
	// This fake hub accepts every event, stores none, and makes no calls.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut:
			_, _ = fmt.Fprintf(w, `{"uuid":%q,"owner":%q}`, path.Base(r.URL.Path), r.Header.Get("X-Actor-Id"))
		case r.URL.Path == "/v1/deliveries":
			_, _ = w.Write([]byte(`{"deliveries":[]}`))
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write([]byte(`{"accepted":30,"duplicates":0}`))
		}
	}))
	defer server.Close()
	hub, err := hubclient.New(server.URL)
	require.NoError(t, err)
	var out, errs strings.Builder
	d := &Demo{Events: 20, Backlog: 10, Seed: 2, Out: &out, Err: &errs, meter: newMeter(), patience: 10 * time.Millisecond}
	require.EqualError(t, d.playAll(t.Context(), hub), "the hub did not serve the market correctly; the seed 2 repeats the run")
	require.True(t, strings.HasSuffix(out.String(), "\n30 lost, 0 duplicated, order kept\n"))
	require.Equal(t, 21, strings.Count(out.String(), "lost: "))
}

// A cancelWriter cancels the broker demo when it prints its first line, which
// is after the last broadcast.
type cancelWriter context.CancelCauseFunc

func (end cancelWriter) Write(p []byte) (int, error) {
	end(errBrokerSlow)
	return len(p), nil
}

// A fake hub accepts messages but delivers none, so the demo must fail.
func TestBrokerDemo_FailsIfNothingIsDelivered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/broker/channel/prices/message/m0.0")
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	b, err := newBrokerDemo(ctx, cancelWriter(end))
	require.NoError(t, err)
	require.ErrorContains(t, b.runAll(ctx, server.URL), "the broker has not delivered in time: billing")
}

func TestBrokerDemo_FailsIfAMessageIsLostOrRepeated(t *testing.T) {
	for _, tc := range []struct {
		got  map[string]int
		want string
	}{
		{map[string]int{"m0.0": 1, "m0.1": 1}, "Of 2 deliveries, 0 were lost, and 0 were repeated."},
		{map[string]int{"m0.0": 1}, "Of 2 deliveries, 1 were lost, and 0 were repeated."},
		{map[string]int{"m0.0": 1, "m0.1": 2}, "Of 2 deliveries, 0 were lost, and 1 were repeated."},
	} {
		var out strings.Builder
		b := &brokerDemo{out: &out, consumers: []*demoConsumer{{name: "billing", got: tc.got}}}
		err := b.printReport([]string{"m0.0", "m0.1"})
		require.Contains(t, out.String(), tc.want)
		require.Equal(t, strings.Contains(tc.want, "0 were lost, and 0 were"), err == nil)
	}
}

func TestPercentile_IsOneOfTheValues(t *testing.T) {
	values := []time.Duration{5, 1, 4, 2, 3}
	require.Equal(t, time.Duration(3), percentileOf(values, 50))
	require.Equal(t, time.Duration(5), percentileOf(values, 99))
	require.Equal(t, time.Duration(1), percentileOf(values, 1))
	require.Zero(t, percentileOf(nil, 50))
}
