package node_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// withoutToken returns settings that contain no token, so that the node creates
// one.
func withoutToken(data string) config.Config {
	cfg := settings(data)
	cfg.Admin.Token = ""
	return cfg
}

// sendOrder sends an operator's request with this Authorization header, and
// returns the status of the response.
func sendOrder(t *testing.T, url, authorization, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// startNginx starts a reverse proxy that behaves like nginx with "proxy_pass
// http://ADDRESS" and default settings: it sends ADDRESS as Host, and does not
// forward the client's address.
func startNginx(t *testing.T, hub string) string {
	t.Helper()
	target, err := url.Parse(hub)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = target.Host
		r.Out.Header.Set("Connection", "close")
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

func TestReverseProxy_GrantsNoOperatorRights(t *testing.T) {
	const bundle = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	for _, insecure := range []bool{false, true} {
		t.Run(fmt.Sprintf("insecure=%v", insecure), func(t *testing.T) {
			cfg := withoutToken(t.TempDir())
			cfg.Insecure = insecure
			n, stop := start(t, cfg, node.Options{})
			outside := startNginx(t, n.URL())
			status, body := call(t, http.MethodPost, outside+"/v1/data-available", "", event)
			require.Equal(t, http.StatusAccepted, status, body)
			status, body = call(t, http.MethodGet, outside+"/v1/peek?bundleId="+bundle, "a", "")
			require.Equal(t, http.StatusOK, status, body)

			skip, freeze := "/v1/admin/queues/a/skip", "/v1/admin/queues/a/freeze"
			const who = `"who":"an outsider","why":"it is open"`
			for _, url := range []string{outside, n.URL()} {
				require.Equal(t, http.StatusUnauthorized, sendOrder(t, url+skip, "", `{`+who+`,"bundleId":"`+bundle+`"}`))
				require.Equal(t, http.StatusUnauthorized, sendOrder(t, url+freeze, "", `{`+who+`}`))
			}
			status, again := call(t, http.MethodGet, outside+"/v1/peek", "a", "")
			require.Equal(t, http.StatusOK, status, "the bundle is open, and nothing is frozen")
			require.Equal(t, body, again)

			token, err := node.ReadAdminToken(cfg.Data)
			require.NoError(t, err)
			require.Equal(t, http.StatusNoContent, sendOrder(t, n.URL()+freeze, "Bearer "+token.Reveal(), `{`+who+`}`))
			require.NoError(t, stop())
		})
	}
}

func TestForwardedRequests_NeverCountAsLocal(t *testing.T) {
	n, stop := start(t, settings(""), node.Options{})
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "Via"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/v1/peek", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("X-Actor-Id", "a")
		req.Header.Set(header, "192.0.2.1")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, header)
	}
	require.NoError(t, stop())
}

func TestInsecureHub_KeepsTheHostCheckOnALoopbackAddress(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		cfg := settings("")
		cfg.Insecure, cfg.Listen = true, listen
		n, stop := start(t, cfg, node.Options{})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/v1/peek", http.NoBody)
		require.NoError(t, err)
		req.Host = "evil.example"
		req.Header.Set("X-Actor-Id", "a")
		req.Header.Set("X-Forwarded-For", "192.0.2.1")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		want := http.StatusBadRequest
		if listen == "0.0.0.0:0" {
			want = http.StatusNoContent // a hub that listens on every address accepts any Host
		}
		require.Equal(t, want, resp.StatusCode, listen)
		require.NoError(t, stop())
	}
}

func TestAdminToken_IsCreatedOnceAndKept(t *testing.T) {
	for _, inMemory := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "a", "data")
		cfg := withoutToken(dir)
		cfg.InMemory = inMemory
		var first config.Secret
		for range 2 {
			var log bytes.Buffer
			n, err := node.Open(t.Context(), cfg, node.Options{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			require.NoError(t, err)
			require.Equal(t, filepath.Join(dir, "admin.token"), n.AdminTokenFile())
			token, err := node.ReadAdminToken(dir)
			require.NoError(t, err)
			require.Regexp(t, regexp.MustCompile(`^messagehub-[A-Z2-7]{26}$`), token.Reveal(), "26 letters of 5 bits")
			if first != "" {
				require.Equal(t, first, token)
			}
			first = token
			require.NotContains(t, log.String(), token.Reveal())
			require.NoError(t, n.Close())
		}
		info, err := os.Lstat(filepath.Join(dir, "admin.token"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		folder, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), folder.Mode().Perm())
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		if inMemory {
			require.Len(t, entries, 1, "only the token is kept")
		}
	}
}

func TestAdminToken_IsTheSameForNodesThatStartTogether(t *testing.T) {
	cfg := withoutToken(t.TempDir())
	cfg.InMemory = true
	var starting sync.WaitGroup
	for range 8 {
		starting.Go(func() {
			n, err := node.Open(context.Background(), cfg, node.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	_, err := node.ReadAdminToken(cfg.Data)
	require.NoError(t, err)
	entries, err := os.ReadDir(cfg.Data)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestAdminToken_IsRefusedWhenOthersMayKnowIt(t *testing.T) {
	const planted = "a-token-that-others-know"
	outside := filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.WriteFile(outside, []byte(planted), 0o600))
	for name, plant := range map[string]func(file string) error{
		"a file that others read":  func(file string) error { return os.WriteFile(file, []byte(planted), 0o644) },
		"a file of the group":      func(file string) error { return os.WriteFile(file, []byte(planted), 0o640) },
		"a link":                   func(file string) error { return os.Symlink(outside, file) },
		"a link inside the folder": func(file string) error { return os.Symlink("lock", file) },
		"a link to nothing":        func(file string) error { return os.Symlink(outside+"-none", file) },
		"a folder":                 func(file string) error { return os.Mkdir(file, 0o700) },
		"no token":                 func(file string) error { return os.WriteFile(file, []byte("short"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withoutToken(t.TempDir())
			require.NoError(t, plant(filepath.Join(cfg.Data, "admin.token")))
			var log safeBuffer
			n, stop := start(t, cfg, node.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			require.Contains(t, log.String(), "set admin.token (MESSAGEHUB_ADMIN_TOKEN)")
			require.NotContains(t, log.String(), planted)
			require.Equal(t, http.StatusForbidden, sendOrder(t, n.URL()+"/v1/admin/check", "Bearer "+planted, "{}"))
			require.Empty(t, n.AdminTokenFile())
			require.NoError(t, stop())
			_, err := node.ReadAdminToken(cfg.Data)
			require.ErrorContains(t, err, "admin.token")
			_, err = os.Stat(outside + "-none")
			require.ErrorIs(t, err, os.ErrNotExist, "nothing was written through the link")
		})
	}
}

func TestAdminToken_OfAFolderThatCannotBeWrittenClosesTheRoutes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	cfg := withoutToken(filepath.Join(file, "data"))
	cfg.InMemory = true
	var log safeBuffer
	n, stop := start(t, cfg, node.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	require.Contains(t, log.String(), "the hub has no token for its operators")
	require.Equal(t, http.StatusForbidden, sendOrder(t, n.URL()+"/v1/admin/check", "", "{}"))
	require.NoError(t, stop())
}
