package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/guide"
	"github.com/messagehub/messagehub/domain"
)

// pageProgram returns the first Python program on a page of the guide.
func pageProgram(t *testing.T, page string) string {
	t.Helper()
	text, err := guide.Pages.ReadFile(page)
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, block)
	return string(block[1])
}

// The program on the guide's page for actors is killed at its first Dequeue, and started again. It
// stores each bundle once.
func TestActorsPage_ItsProgramStoresABundleOnce(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Log("python3 is not on this machine, so the program is not run")
		return
	}
	f := newFixture(t)
	dequeues := make(chan struct{}, 3)
	var count atomic.Int32
	f.store.acknowledge = func() error {
		dequeues <- struct{}{}
		if count.Add(1) == 1 {
			return domain.Errorf(domain.Unavailable, "the program is killed")
		}
		return nil
	}
	server := httptest.NewServer(f.server.Handler()) // started only now, because the program does not synchronize with this process
	t.Cleanup(server.Close)
	f.url, f.client = server.URL, server.Client()
	f.post(202, newEvent(1, "supportsBundling", false), newEvent(2, "supportsBundling", false))
	folder := t.TempDir()
	program := strings.NewReplacer("http://127.0.0.1:8080", f.url, "5790001330552", actor).Replace(pageProgram(t, "actors.md"))
	for _, n := range []int{1, 2} {
		ctx, kill := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, "python3", "-c", program)
		cmd.Dir = folder
		require.NoError(t, cmd.Start())
		for range n {
			<-dequeues
		}
		kill()
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &exit)
	}
	require.NotContains(t, f.do(http.MethodGet, "/v1/peek", "").body, id(1))
	cmd := exec.CommandContext(t.Context(), "python3", "-c",
		"import sqlite3\nfor body, in sqlite3.connect('bundles.db').execute('SELECT body FROM bundles'): print(body.decode())")
	cmd.Dir = folder
	stored, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", stored)
	require.Equal(t, 1, strings.Count(string(stored), id(1)), "%s", stored)
	require.Equal(t, 1, strings.Count(string(stored), id(2)), "%s", stored)
}
