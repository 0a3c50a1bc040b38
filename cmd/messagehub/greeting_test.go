//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openTerminal opens a pseudo terminal. Text written to tty can be read from
// watcher.
func openTerminal(t testing.TB) (watcher, tty *os.File) {
	t.Helper()
	watcher, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { watcher.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(watcher.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(watcher.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile(filepath.Join("/dev/pts", fmt.Sprint(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	_, err = term.MakeRaw(int(tty.Fd()))
	require.NoError(t, err)
	return watcher, tty
}

// startWatchedHub starts a hub whose standard output is a terminal, and waits until it is ready.
func startWatchedHub(t testing.TB, environ []string, args ...string) *hubProcess {
	t.Helper()
	watcher, tty := openTerminal(t)
	cmd := exec.Command(program(t), append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...)...)
	cmd.Env, cmd.Stdout = append(cleanEnviron(), environ...), tty
	h := spawn(t, cmd, watcher)
	require.NoError(t, tty.Close(), "only the hub has it open, so that reading ends with the hub")
	require.NoError(t, h.waitReady())
	return h
}

var lastCommand = regexp.MustCompile(`(?m)^  .* dequeue .*\n`)

// commands returns the commands that a hub prints when it starts.
func (h *hubProcess) commands(t testing.TB) (commands []string) {
	t.Helper()
	h.awaitGreeting(t, lastCommand)
	for line := range strings.Lines(h.printed()) {
		if command, ok := strings.CutPrefix(line, "  "); ok {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// shell runs a command in a different folder, and returns its output.
func shell(t testing.TB, command string) (out, errs string, err error) {
	t.Helper()
	sh := exec.Command("sh", "-c", command)
	sh.Dir, sh.Env = t.TempDir(), cleanEnviron()
	var said strings.Builder
	sh.Stderr = &said
	text, err := sh.Output()
	return string(text), said.String(), err
}

func TestServe_PrintsCommandsThatWork(t *testing.T) {
	cert, key := writeCertificate(t)
	const accepted, content = "1 accepted, 0 duplicates, 0 conflicts\n", `^\[\n\{"id":".*"sequence":1\}\n\]\n$`
	for name, tc := range map[string]struct {
		environ, args []string
		content       string
	}{
		"in memory":        {nil, []string{"--in-memory"}, content},
		"in a folder":      {nil, []string{"--data", filepath.Join(t.TempDir(), "it's a folder", "of ours")}, content},
		"with TLS":         {[]string{"MESSAGEHUB_TLS_CERT=" + cert, "MESSAGEHUB_TLS_KEY=" + key}, []string{"--in-memory"}, content},
		"inline content":   {[]string{"MESSAGEHUB_DOMAINS=[{name: Charges, content: inline}]"}, []string{"--in-memory"}, `^\[\n\{"price":1\}\n\]\n$`},
		"Charges requests": {[]string{"MESSAGEHUB_DOMAINS=[{name: Charges, content: request}]"}, []string{"--in-memory"}, content},
	} {
		t.Run(name, func(t *testing.T) {
			h := startWatchedHub(t, append(tc.environ, tokenVariable+"="+operatorToken), tc.args...)
			commands := h.commands(t)
			require.Len(t, commands, 3)
			var results []string
			for _, command := range commands {
				out, errs, err := shell(t, command)
				require.NoError(t, err, "%s\n%s", command, errs)
				results = append(results, out)
			}
			require.Equal(t, accepted, results[0])
			require.Regexp(t, tc.content, results[1])
			require.Regexp(t, `^dequeued [-0-9a-f]{36}\n$`, results[2])
			require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
		})
	}
}

func TestServe_PrintsNoCommandsWithoutATerminal(t *testing.T) {
	h := startHub(t, "--in-memory", "--log-level", "error")
	require.Regexp(t, `^\{"time":"[^"]+","level":"INFO","msg":"ready","url":"`+h.url(t)+`","admin_url":"http://[^"]+"\}\n$`, h.stderrText(),
		"whatever the level of the log")
	require.NoError(t, h.stop(t, syscall.SIGTERM))
	require.Regexp(t, `^MessageHub \S+ listens on \S+ and keeps its data in memory, until it stops\.\n`, h.printed())
	require.Contains(t, h.printed(), "Its console is at ")
	require.NotContains(t, h.printed(), "Try it")
	require.NotContains(t, h.printed(), "\n\n")
}

func TestAccessFlags_NameAHostOfTheCertificate(t *testing.T) {
	cert, _ := writeCertificate(t)
	require.Equal(t, " --url https://127.0.0.1:8443 --ca "+cert, accessFlags("https://127.0.0.1:8443", cert))
	require.Equal(t, " --url https://localhost:8443 --ca "+cert, accessFlags("https://192.0.2.1:8443", cert))
	require.Empty(t, accessFlags("http://127.0.0.1:8080", ""))
}
