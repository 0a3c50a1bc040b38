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

// startPageProgram starts the program on the guide's page for actors in folder, with the hub of f. The program
// ends when kill is called.
func startPageProgram(t *testing.T, f *hubFixture, folder string) (cmd *exec.Cmd, kill func()) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	t.Cleanup(kill)
	program := strings.NewReplacer("http://127.0.0.1:8080", f.url, "5790001330552", actor).Replace(pageProgram(t, "actors.md"))
	cmd = exec.CommandContext(ctx, "python3", "-c", program)
	cmd.Dir = folder
	require.NoError(t, cmd.Start())
	return cmd, kill
}

// storedByPageProgram returns the bundles in the database of the program in folder.
func storedByPageProgram(t *testing.T, folder string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "-c",
		"import sqlite3\nfor body, in sqlite3.connect('bundles.db').execute('SELECT body FROM bundles'): print(body.decode())")
	cmd.Dir = folder
	stored, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", stored)
	return string(stored)
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
	for _, n := range []int{1, 2} {
		cmd, kill := startPageProgram(t, f, folder)
		for range n {
			<-dequeues
		}
		kill()
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &exit)
	}
	require.NotContains(t, f.do(http.MethodGet, "/v1/peek", "").body, id(1))
	stored := storedByPageProgram(t, folder)
	require.Equal(t, 1, strings.Count(stored, id(1)), stored)
	require.Equal(t, 1, strings.Count(stored, id(2)), stored)
}

// The connection breaks in the body of an error response to the first Peek, and in the body of the 404 that follows a
// Dequeue with a lost response. The program repeats both requests.
func TestActorsPage_ItsProgramSurvivesAnErrorResponseThatBreaksOff(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Log("python3 is not on this machine, so the program is not run")
		return
	}
	f := newFixture(t)
	hub := f.server.Handler()
	breakOff := func(w http.ResponseWriter, status int) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(status)
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	var peeks, dequeues atomic.Int32
	second := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && peeks.Add(1) == 1:
			breakOff(w, http.StatusBadRequest)
		case r.Method == http.MethodDelete && dequeues.Add(1) == 1:
			hub.ServeHTTP(httptest.NewRecorder(), r)
			breakOff(w, http.StatusNotFound)
		case r.Method == http.MethodDelete && dequeues.Load() == 3:
			close(second)
		}
		hub.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url, f.client = server.URL, server.Client()
	f.post(202, newEvent(1, "supportsBundling", false), newEvent(2, "supportsBundling", false))
	folder := t.TempDir()
	cmd, kill := startPageProgram(t, f, folder)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-second:
	case err := <-ended:
		require.Fail(t, "the program ended", "%v", err)
	}
	kill()
	require.Error(t, <-ended)
	require.Equal(t, 2, strings.Count(storedByPageProgram(t, folder), actor))
}
