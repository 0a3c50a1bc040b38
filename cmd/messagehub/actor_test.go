package main

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stoppingWriter calls stop when the text written to it matches a pattern.
type stoppingWriter struct {
	mu   sync.Mutex
	text bytes.Buffer
	when *regexp.Regexp
	stop func()
}

func (w *stoppingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if w.when.Match(w.text.Bytes()) {
		w.stop()
	}
	return len(p), nil
}

func TestActor_ConfirmsBundlesUntilItIsStopped(t *testing.T) {
	var requests atomic.Int64
	url := memoryHub(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v1/peek") && requests.Add(1) == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	require.Equal(t, 0, messagehub(t, events(1, 3), "send", "--url", url, "-").status)
	ctx, cancel := context.WithCancel(t.Context())
	out := &stoppingWriter{when: regexp.MustCompile(`dequeued `), stop: cancel}
	var errs strings.Builder
	status := run(ctx, &process{args: []string{"messagehub", "actor", "--url", url, "--actor", actorA}, out: out, err: &errs})
	require.Equal(t, 0, status, errs.String())
	require.Regexp(t, `(?s)^actor 5790001330552 at \S+; Ctrl-C ends it\ndequeued \S+: \d+ bytes of D18\n1 bundle, \d+ bytes\n$`, out.text.String())
	require.Contains(t, errs.String(), "(503)")
	require.Equal(t, 3, messagehub(t, "", "peek", "--url", url, "--actor", actorA).status, "all is confirmed")
}

func TestActor_EndsWithAPermanentError(t *testing.T) {
	url := memoryHub(t, nil)
	got := messagehub(t, "", "actor", "--url", url, "--actor", actorA, "--group", "weather")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "known are aggregations, masterdata, timeseries")
	for want, args := range map[string][]string{
		"--actor is missing": {"--url", url},
		"--timeout: want":    {"--actor", actorA, "--timeout", "0s"},
		"unknown command":    {"now"},
	} {
		got := messagehub(t, "", append([]string{"actor"}, args...)...)
		require.Equal(t, 2, got.status)
		require.Contains(t, got.err, want)
	}
}
