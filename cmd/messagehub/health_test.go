package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
)

// health runs messagehub health with these environment variables.
func health(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	status := run(t.Context(), &process{
		args: append([]string{"messagehub", "health"}, args...), environ: environ, out: &out, err: &errs,
	})
	return result{status, out.String(), errs.String()}
}

func TestHealth_ProbesTheHubOfTheSettings(t *testing.T) {
	hub := startHub(t, "--in-memory", "--admin-listen", "localhost:0", "--bus-listen", "", "--blob-listen", "")
	public := strings.TrimPrefix(hub.url(t), "http://")
	_, port, err := net.SplitHostPort(public)
	require.NoError(t, err)
	admin := adminAddress(t, hub, "http")
	for _, environ := range [][]string{
		{"MESSAGEHUB_ADMIN_LISTEN=" + admin},
		{"MESSAGEHUB_ADMIN_LISTEN=", "MESSAGEHUB_LISTEN=" + public},
		{"MESSAGEHUB_ADMIN_LISTEN=", "MESSAGEHUB_LISTEN=:" + port, "MESSAGEHUB_INSECURE=true"},
		{"MESSAGEHUB_ADMIN_LISTEN=", "MESSAGEHUB_LISTEN=0.0.0.0:" + port, "MESSAGEHUB_INSECURE=true"},
	} {
		require.Equal(t, result{0, `{"status":"ok"}` + "\n", ""}, health(t, environ), environ)
		got := health(t, environ, "--ready")
		require.Equal(t, 0, got.status, got.err)
	}
	require.Equal(t, 0, health(t, nil, "--url", "http://"+public).status)
}

func TestHealth_ProbesAHubWithTLS(t *testing.T) {
	cert, key := writeCertificate(t)
	environ := []string{"MESSAGEHUB_TLS_CERT=" + cert, "MESSAGEHUB_TLS_KEY=" + key, tokenVariable + "=" + operatorToken}
	hub := spawnHubIn(t, environ, "--in-memory", "--admin-listen", "localhost:0", "--bus-listen", "", "--blob-listen", "")
	require.NoError(t, hub.waitReady())
	admin := adminAddress(t, hub, "https")
	got := health(t, append(environ, "MESSAGEHUB_ADMIN_LISTEN="+admin))
	require.Equal(t, 0, got.status, got.err)
	got = health(t, nil, "--url", "https://"+admin)
	require.Equal(t, 1, got.status, "a certificate of an unknown authority")
	require.Equal(t, 0, health(t, nil, "--url", "https://"+admin, "--ca", cert).status)
	require.Equal(t, 1, health(t, nil, "--url", "http://"+admin).status)
}

func TestHealth_FailsUnlessTheAnswerIs200InTime(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"answers 503: it is not ready": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "it is not ready", http.StatusServiceUnavailable)
		},
		"answers 302": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"is incomplete": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "ok")
		},
	}
	for want, handler := range answers {
		server := httptest.NewServer(handler)
		got := health(t, nil, "--ready", "--url", server.URL)
		server.Close()
		require.Equal(t, 1, got.status)
		require.Contains(t, got.err, want)
		require.Empty(t, got.out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel() // cancelled, so that the test does not wait for the timeout
		<-r.Context().Done()
	}))
	defer server.Close()
	var errs strings.Builder
	status := run(ctx, &process{args: []string{"messagehub", "health", "--url", server.URL}, out: &errs, err: &errs})
	require.Equal(t, 1, status)
	require.Contains(t, errs.String(), "no answer from the hub at "+server.URL)

	got := health(t, nil, "--url", "http://"+freeAddress(t))
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "no hub listens at")
}

func TestHealth_RefusesAWrongCommandLine(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "hub.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("listn: 127.0.0.1:1\n"), 0o600))
	for want, args := range map[string][]string{
		"want the address of a hub":   {"--url", "localhost:8080"},
		"unknown command":             {"now"},
		"a certificate needs its key": {"--cert", "x", "--url", "http://127.0.0.1:1"},
	} {
		got := health(t, nil, args...)
		require.Equal(t, 2, got.status)
		require.Contains(t, got.err, want)
	}
	got := health(t, []string{"MESSAGEHUB_LISTEN=127.0.0.1:0"})
	require.Equal(t, 2, got.status)
	require.Contains(t, got.err, "name the hub with --url")
	got = health(t, nil, "--config", broken)
	require.Equal(t, 2, got.status)
	require.Contains(t, got.err, "did you mean listen?")
}

func TestProbeURL_IsOfThisMachine(t *testing.T) {
	for address, want := range map[string]string{
		":8080":           "http://127.0.0.1:8080",
		"0.0.0.0:8080":    "http://127.0.0.1:8080",
		"[::]:8080":       "http://[::1]:8080",
		"[::1]:8080":      "http://[::1]:8080",
		"192.0.2.7:8080":  "http://192.0.2.7:8080",
		"localhost:8080":  "http://localhost:8080",
		"hub.internal:80": "http://hub.internal:80",
	} {
		got, err := probeURL(&config.Config{AdminListen: address, Listen: "127.0.0.1:9"})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// writeCertificate writes a certificate for this machine, and its key. It
// returns the paths of both files.
func writeCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	folder := t.TempDir()
	_, err := certificate.Load(folder, "localhost", "127.0.0.1")
	require.NoError(t, err)
	return filepath.Join(folder, certificate.FileName), filepath.Join(folder, certificate.KeyName)
}

var operatorsUse = regexp.MustCompile(`Operators and their tools use (https?)://(\S+)\.`)

// adminAddress returns the address of a hub's operators' listener.
func adminAddress(t testing.TB, h *hubProcess, scheme string) string {
	t.Helper()
	found := h.awaitGreeting(t, operatorsUse)
	require.Equal(t, scheme, found[1])
	return found[2]
}

// freeAddress returns a loopback address at which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
