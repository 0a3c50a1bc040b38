package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/terminal"
)

func TestServe_PrintsCommandsForItsAddress(t *testing.T) {
	for _, tc := range []struct{ name, program, want string }{
		{"a plain path", "/opt/bin/messagehub", "/opt/bin/messagehub"},
		{"a path with a blank", "/my files/messagehub", "'/my files/messagehub'"},
		{"a path with a quote", "/it's/messagehub", `'/it'\''s/messagehub'`},
	} {
		t.Run(tc.name, func(t *testing.T) { require.Equal(t, tc.want, terminal.ShellWord(tc.program)) })
	}
	t.Run("a program on the path is called by its name", func(t *testing.T) {
		dir := t.TempDir()
		self, err := os.Executable()
		require.NoError(t, err)
		require.NoError(t, os.Symlink(self, filepath.Join(dir, "messagehub")))
		require.Equal(t, self, programName("messagehub"))
		t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		require.Equal(t, "messagehub", programName("messagehub"))
	})
}

func TestServe_StopsWithoutErrorAtBothSignals(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		h := startHub(t, "--in-memory")
		require.NoError(t, h.stop(t, signal), h.stderrText())
		require.Contains(t, h.stderrText(), `"msg":"stopped"`)
	}
}

// begunRequest sends the head of a POST and half of its body. It returns after
// the hub has begun to read the body.
func begunRequest(t *testing.T, url, head, rest string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v1/data-available HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n%s",
		len(head)+len(rest), head)
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
	_, err = r.ReadString('\n')
	require.NoError(t, err)
	return conn, r
}

func TestServe_CompletesARunningRequestBeforeItStops(t *testing.T) {
	data := dataFolder(t)
	h := startHub(t, "--data", data)
	url := h.url(t)
	head, rest := "["+strings.TrimSpace(event(1, "")), "]"
	conn, answer := begunRequest(t, url, head, rest)
	require.NoError(t, h.cmd.Process.Signal(syscall.SIGTERM))
	h.await(t, `"msg":"draining"`)
	fmt.Fprint(conn, rest)
	resp, err := http.ReadResponse(answer, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"accepted":1,"duplicates":0}`, string(body))
	require.NoError(t, h.wait(t), h.stderrText())

	again := startHub(t, "--data", data)
	got := messagehub(t, "", "peek", "--url", again.url(t), "--actor", actorA)
	require.Contains(t, got.out, `"id":"00000000-0000-4000-8000-000000000001"`)
}

func TestServe_StopsImmediatelyAtASecondSignal(t *testing.T) {
	h := startHub(t, "--in-memory")
	begunRequest(t, h.url(t), "[", "]") // this request never ends
	require.NoError(t, h.cmd.Process.Signal(syscall.SIGTERM))
	h.await(t, `"msg":"draining"`)
	err := h.stop(t, syscall.SIGTERM)
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, 1, exit.ExitCode())
}

func TestServe_ReportsInOneLineWhyItDoesNotStart(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	damaged := dataFolder(t)
	for _, store := range []string{"cosmos", "bus", "content", "exchange"} {
		require.NoError(t, os.MkdirAll(filepath.Join(damaged, store), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(damaged, store, "store.db"), []byte(strings.Repeat("no database ", 1000)), 0o600))
	}
	used := dataFolder(t)
	startHub(t, "--data", used)

	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"the port is taken", []string{"--in-memory", "--listen", taken.Addr().String()}, []string{
			"listen on " + taken.Addr().String() + ": another process has this port; stop that one, or choose another port with --listen",
		}},
		{"the address is another machine's", []string{"--in-memory", "--insecure", "--listen", "192.0.2.1:0"}, []string{
			"listen on 192.0.2.1:0: this machine does not have that address; choose one of its own with --listen",
		}},
		{"others could reach it", []string{"--in-memory", "--listen", "0.0.0.0:0"}, []string{
			`listen = "0.0.0.0:0" (--listen): actors are not authenticated`, "give --insecure if every client that reaches it is trusted",
		}},
		{"the folder is a file", []string{"--data", file}, []string{
			"data folder " + file + ": it is not a folder, or not in one; choose another with --data",
		}},
		{"the folder is below a file", []string{"--data", filepath.Join(file, "x")}, []string{
			"it is not a folder, or not in one; choose another with --data",
		}},
		{"the folder is another hub's", []string{"--data", used}, []string{
			"data folder " + used + ": another process uses it; stop that one, or choose another folder with --data",
		}},
		{"the folder is damaged", []string{"--data", damaged}, []string{
			filepath.Join(damaged, "cosmos", "store.db") + ": the file is damaged; restore the whole folder from a backup",
		}},
		{"the folder can be written by nobody", []string{"--data", "/sys/messagehub"}, []string{
			"data folder /sys/messagehub: ", "or choose another folder with --data",
		}},
		{"a file of settings is missing", []string{"--config", "nowhere.yaml"}, []string{"cannot read the configuration file: open nowhere.yaml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"serve"}, tc.args...)
			if !strings.Contains(strings.Join(args, " "), "--listen") {
				args = append(args, "--listen", "127.0.0.1:0")
			}
			got := messagehub(t, "", args...)
			require.Empty(t, got.out)
			got.err = strings.TrimSuffix(got.err, "messagehub: see messagehub serve --help\n") // printed only if a value is wrong, which is exit status 2
			require.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
			for _, want := range tc.want {
				require.Contains(t, got.err, want)
			}
		})
	}
}

func TestOperatorsUseTheirOwnListener(t *testing.T) {
	h := startHub(t, "--in-memory", "--admin-listen", "localhost:0")
	admin := "http://" + adminAddress(t, h, "http")
	require.NotEqual(t, h.url(t), admin)
	show := func(url string) result {
		return runWith(t, []string{tokenVariable + "=" + operatorToken}, "queue", "show", "--url", url, actorA)
	}
	require.Equal(t, exitNoData, show(admin).status)
	require.Equal(t, 0, runWith(t, []string{tokenVariable + "=" + operatorToken}, "check", "--url", admin).status)
	require.Contains(t, show(h.url(t)).err, "Operators' routes are at another address of this hub: its setting admin-listen.")
	require.Contains(t, messagehub(t, "", "peek", "--actor", actorA, "--url", admin).err, "Actors and domains use another one of this hub: its setting listen.")
	require.Contains(t, messagehub(t, "", "serve", "--help").out, `(default "127.0.0.1:8081")`)
	require.Contains(t, messagehub(t, "", "queue", "show", "--help").out, `(default "http://127.0.0.1:8081")`)
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
}

func TestServe_RejectsAnOriginThatMovedToAnotherGroup(t *testing.T) {
	data := dataFolder(t)
	h := startHub(t, "--data", data)
	require.NoError(t, h.stop(t, syscall.SIGTERM))
	settings := filepath.Join(t.TempDir(), "hub.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("domains: [{name: Charges, group: prices}]\n"), 0o600))
	got := messagehub(t, "", "serve", "--data", data, "--listen", "127.0.0.1:0", "--bus-listen", "", "--blob-listen", "", "--config", settings)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "origin Charges is configured for group prices, but this store has used it in group masterdata")
	require.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
}

func TestServe_InsecurePrintsALoopbackURL(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &signallingWriter{want: "dequeue", seen: cancel} // stops the hub after the greeting
	var errs strings.Builder
	status := run(ctx, &process{
		args:    []string{"messagehub", "serve", "--in-memory", "--insecure", "--listen", ":0", "--log-format", "text"},
		environ: []string{tokenVariable + "=" + operatorToken},
		out:     out, err: &errs,
		isWatched: true,
	})
	require.Equal(t, 0, status, errs.String())
	require.Regexp(t, `listens on http://(127\.0\.0\.1|\[::1\]):\d+ and keeps its data in memory, until it stops\.`, out.text.String())
	require.Contains(t, errs.String(), "level=INFO msg=starting")
	require.Contains(t, errs.String(), "level=INFO msg=ready url=http://")
}

// A signallingWriter calls seen when the text written to it contains want.
type signallingWriter struct {
	text strings.Builder
	want string
	seen func()
}

func (s *signallingWriter) Write(p []byte) (int, error) {
	s.text.Write(p)
	if strings.Contains(s.text.String(), s.want) {
		s.seen()
	}
	return len(p), nil
}
