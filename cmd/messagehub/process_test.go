package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is the time after which a test fails if an expected event does not
// happen. It is long because the machine may be busy. No successful test waits
// this long.
const patience = 60 * time.Second

var buildDir string

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "messagehub-test-"); err != nil {
		panic(err)
	}
	status := m.Run()
	if err := os.RemoveAll(buildDir); err != nil {
		panic(err)
	}
	os.Exit(status)
}

// program builds the program once, and returns its path.
func program(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "messagehub")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// cleanEnviron returns the environment of the test process, without settings of
// a hub.
func cleanEnviron() []string {
	var clean []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "MESSAGEHUB_") {
			clean = append(clean, entry)
		}
	}
	return clean
}

// A hubProcess is a hub in a separate process.
type hubProcess struct {
	cmd     *exec.Cmd
	data    string        // data folder; "" if the test does not need it
	greeted chan struct{} // closed when the hub has printed its address
	ready   chan struct{} // closed when the hub has logged that it is ready
	exited  chan struct{} // closed when the process has ended and its output was read
	err     error         // error returned by cmd.Wait; set before exited is closed

	mu             sync.Mutex
	stdout, stderr strings.Builder
	more           chan struct{} // more is closed and replaced after each line
}

// spawnHub starts a hub on a free port, which is stopped at the end of the
// test.
func spawnHub(t testing.TB, args ...string) *hubProcess {
	t.Helper()
	return spawnHubWith(t, nil, args...)
}

// dataFolder returns a path at which a hub can create its data folder. A test
// must not create the folder, because a hub warns about a folder that other
// users may read.
func dataFolder(t testing.TB) string { return filepath.Join(t.TempDir(), "data") }

// operatorToken is the operators' token of hubs in tests. If a token is
// configured, a hub creates no token file.
const operatorToken = "a-token-of-all-operators"

// spawnHubWith starts a hub with additional environment variables.
func spawnHubWith(t testing.TB, environ []string, args ...string) *hubProcess {
	t.Helper()
	return spawnHubIn(t, append([]string{tokenVariable + "=" + operatorToken}, environ...), args...)
}

// spawnHubIn starts a hub whose environment contains no settings other than
// environ.
func spawnHubIn(t testing.TB, environ []string, args ...string) *hubProcess {
	t.Helper()
	return spawnCommand(t, environ, append([]string{program(t), "serve", "--listen", "127.0.0.1:0"}, args...)...)
}

// spawnCommand starts a hub with this command line.
func spawnCommand(t testing.TB, environ []string, command ...string) *hubProcess {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(cleanEnviron(), environ...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return spawn(t, cmd, stdout)
}

// spawn runs cmd, which starts a hub, and reads the hub's standard output from
// stdout.
func spawn(t testing.TB, cmd *exec.Cmd, stdout io.Reader) *hubProcess {
	t.Helper()
	h := &hubProcess{cmd: cmd, greeted: make(chan struct{}), ready: make(chan struct{}), exited: make(chan struct{}), more: make(chan struct{})}
	stderr, err := h.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { h.read(stdout, &h.stdout, h.greeted, listens) })
	reading.Go(func() { h.read(stderr, &h.stderr, h.ready, readyRecord) })
	go func() {
		reading.Wait()
		h.err = h.cmd.Wait()
		close(h.exited)
	}()
	t.Cleanup(h.kill)
	return h
}

// startHub starts a hub and waits until it is ready.
func startHub(t testing.TB, args ...string) *hubProcess {
	t.Helper()
	h := spawnHub(t, args...)
	if err := h.waitReady(); err != nil {
		t.Fatal(err)
	}
	return h
}

// readyRecord matches the record that a hub logs when it begins to serve, in
// both log formats. Tests of upgrades also start older hubs, which log only the
// word ready.
var readyRecord = regexp.MustCompile(`"msg":"ready"|msg=ready |^ready\n`)

// read copies the hub's output from r to the builder. It closes seen at the
// first line that matches want.
func (h *hubProcess) read(r io.Reader, into *strings.Builder, seen chan struct{}, want *regexp.Regexp) {
	lines, isSeen := bufio.NewReader(r), false
	for {
		line, err := lines.ReadString('\n')
		h.mu.Lock()
		into.WriteString(line)
		close(h.more)
		h.more = make(chan struct{})
		h.mu.Unlock()
		if !isSeen && want.MatchString(line) {
			isSeen = true
			close(seen)
		}
		if err != nil {
			return
		}
	}
}

func (h *hubProcess) waitReady() error {
	select {
	case <-h.ready:
		return nil
	case <-h.exited:
		return fmt.Errorf("the hub ended before it was ready: %w\n%s", h.err, h.stderrText())
	case <-time.After(patience):
		return fmt.Errorf("the hub is not ready after %s\n%s", patience, h.stderrText())
	}
}

// stderrText returns what the hub has written to standard error so far.
func (h *hubProcess) stderrText() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr.String()
}

// await waits until the hub has written text to standard error.
func (h *hubProcess) await(t testing.TB, text string) {
	t.Helper()
	for {
		h.mu.Lock()
		more, found := h.more, strings.Contains(h.stderr.String(), text)
		h.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-time.After(patience):
			t.Fatalf("the hub has not said %q after %s\n%s", text, patience, h.stderrText())
		}
	}
}

// awaitGreeting waits until the hub's standard output matches a pattern, and
// returns the match.
func (h *hubProcess) awaitGreeting(t testing.TB, pattern *regexp.Regexp) []string {
	t.Helper()
	for {
		h.mu.Lock()
		more, found := h.more, pattern.FindStringSubmatch(h.stdout.String())
		h.mu.Unlock()
		if found != nil {
			return found
		}
		select {
		case <-more:
		case <-time.After(patience):
			t.Fatalf("the hub has not printed %s after %s\n%s", pattern, patience, h.stderrText())
		}
	}
}

var listens = regexp.MustCompile(`listens on (https?://\S+) and`)

// printed returns what the hub has written to standard output so far.
func (h *hubProcess) printed() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stdout.String()
}

// url returns the URL at which the hub listens.
func (h *hubProcess) url(t testing.TB) string {
	t.Helper()
	select {
	case <-h.greeted:
	case <-h.exited:
	case <-time.After(patience):
	}
	found := listens.FindStringSubmatch(h.printed())
	if found == nil {
		t.Fatalf("no address in %q\n%s", h.printed(), h.stderrText())
	}
	return found[1]
}

// kill kills the hub with SIGKILL, and waits until the process has ended.
func (h *hubProcess) kill() {
	_ = h.cmd.Process.Kill() // fails only if the hub has already ended
	<-h.exited
}

// stop sends a signal to the hub, waits until the process has ended, and
// returns its exit error.
func (h *hubProcess) stop(t testing.TB, signal os.Signal) error {
	t.Helper()
	if err := h.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	return h.wait(t)
}

func (h *hubProcess) wait(t testing.TB) error {
	t.Helper()
	select {
	case <-h.exited:
		return h.err
	case <-time.After(patience):
		t.Fatalf("the hub still runs after %s\n%s", patience, h.stderrText())
		return nil
	}
}
