package demo

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

func TestTheDemoFailsIfTheHubLoses(t *testing.T) {
	// A hub that accepts every event and stores none.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"accepted":30,"duplicates":0}`))
	}))
	defer server.Close()
	hub, err := hubclient.New(server.URL)
	require.NoError(t, err)
	var out, errs strings.Builder
	d := &Demo{Events: 20, Backlog: 10, Seed: 2, Out: &out, Err: &errs, meter: newMeter()}
	require.EqualError(t, d.play(t.Context(), hub), "the market was not served as promised; the seed 2 plays it again")
	require.True(t, strings.HasSuffix(out.String(), "\n30 lost, 0 duplicated, order kept\n"))
	require.Equal(t, 21, strings.Count(out.String(), "lost: "))
}

func TestAPercentileIsOneOfTheValues(t *testing.T) {
	values := []time.Duration{5, 1, 4, 2, 3}
	require.Equal(t, time.Duration(3), percentile(values, 50))
	require.Equal(t, time.Duration(5), percentile(values, 99))
	require.Equal(t, time.Duration(1), percentile(values, 1))
	require.Zero(t, percentile(nil, 50))
}
