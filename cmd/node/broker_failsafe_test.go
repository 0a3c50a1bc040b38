package node_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// workerSettings returns settings with a fail-safe worker whose pauses are
// short.
func workerSettings(dir string) config.Config {
	cfg := brokerSettings(dir)
	cfg.Broker.FailSafe, cfg.Broker.RationalDelay = config.FailSafeWorker, 50*time.Millisecond
	return cfg
}

func TestFailSafeWorker_CallsTheRetriggerURL(t *testing.T) {
	lists, retriggers := make(chan string, 1000), make(chan string, 1000)
	hubs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Broker-Admin-Token") != "token-of-the-operators" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if r.Method == http.MethodPost {
			retriggers <- r.URL.String()
			w.WriteHeader(http.StatusAccepted)
			return
		}
		lists <- r.URL.String()
		_, _ = io.WriteString(w, `{"jobs":[{"channel":"c","message":"m0.0","consumer":"k"}]}`)
	}))
	t.Cleanup(hubs.Close)
	cfg := workerSettings(t.TempDir())
	cfg.Broker.RetriggerURL = hubs.URL + "/hubs"
	_, stop := start(t, cfg, node.Options{})
	require.Equal(t, "/hubs/broker/overdue?delay=50ms", <-lists)
	require.Equal(t, "/hubs/broker/channel/c/message/m0.0/job/k/re-trigger", <-retriggers)
	<-lists
	require.NoError(t, stop(), "it ends with its node")
	require.Empty(t, retriggers, "no job is re-triggered again and again")
}

func TestFailSafeWorker_CallsItsOwnNodeByDefault(t *testing.T) {
	answers := make(chan string, 1000)
	cfg := workerSettings(t.TempDir())
	cfg.Admin.Token = "" // the node creates the operator's token
	_, stop := start(t, cfg, node.Options{WrapHandler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorder := httptest.NewRecorder()
			next.ServeHTTP(recorder, r)
			w.WriteHeader(recorder.Code)
			_, _ = w.Write(recorder.Body.Bytes())
			answers <- r.URL.Path + " " + recorder.Body.String()
		})
	}})
	for range 2 {
		require.Equal(t, "/broker/overdue {\"jobs\":[]}\n", <-answers)
	}
	require.NoError(t, stop())
}
