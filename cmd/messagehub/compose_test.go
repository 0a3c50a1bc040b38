package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// The commands in deploy/compose.yaml must serve a domain and an actor. The
// test replaces host names by free loopback ports, and volumes by folders.
func TestCompose_ItsCommandsServeADomainAndAnActor(t *testing.T) {
	program(t) // built before the measurement starts
	began := time.Now()
	c := &composeServices{folder: t.TempDir(), services: readCompose(t), addresses: make(map[string]string), processes: make(map[string]*composeProcess)}
	c.startAll(t)

	// The other node must be able to fetch an event that hub-a stored.
	url := "http://" + c.addresses["hub-a:8080"]
	recipient := "5790000000005"
	event := fmt.Sprintf(`{"id":%q,"recipient":%q,"origin":"TimeSeries","contentType":"Readings","documentType":"D1","supportsBundling":true,"weight":1}`, uuid.NewString(), recipient)
	got := messagehub(t, event, "send", "--url", url, "-")
	require.Equal(t, 0, got.status, got.err)
	got = messagehub(t, "", "peek", "--url", "http://"+c.addresses["hub-b:8080"], "--actor", recipient, "--wait", "20s")
	require.Equal(t, 0, got.status, got.err)
	t.Logf("from the first command to the first peeked message: %s", time.Since(began).Round(time.Millisecond))

	c.processes["actor"].await(t, regexp.MustCompile(`dequeued \S+: [1-9]\d* bytes`))
	c.processes["domain"].await(t, regexp.MustCompile(`answered \S+ in`))
	c.processes["domain"].await(t, regexp.MustCompile(`notice: 5790001330552 dequeued`))
	c.checkLogs(t)
	c.stopAll(t)
}

// A composeServices contains the running services of the file.
type composeServices struct {
	folder    string
	services  map[string]*composeService
	addresses map[string]string // addresses on this machine, by SERVICE:PORT in the file
	processes map[string]*composeProcess
	order     []string // names of the services in the order in which they were started
}

// startAll starts each service when its dependencies are healthy or have ended.
func (c *composeServices) startAll(t *testing.T) {
	t.Helper()
	ours := make(map[string]*composeService)
	for name, s := range c.services {
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if s.isOurs() {
				require.NoError(t, os.MkdirAll(filepath.Join(c.folder, source), 0o700))
			}
		}
		if s.isOurs() {
			ours[name] = s
		}
	}
	require.Len(t, ours, 8)
	for len(c.order) < len(ours) {
		before := len(c.order)
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			if c.processes[name] == nil && c.isStartable(ours[name]) {
				c.start(t, name, ours[name])
			}
		}
		require.Greater(t, len(c.order), before, "services wait for each other")
	}
}

func (c *composeServices) isStartable(s *composeService) bool {
	for name := range s.DependsOn {
		if c.processes[name] == nil {
			return false
		}
	}
	return true
}

var greetedAddress = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// start starts a service, and waits until dependent services may start.
func (c *composeServices) start(t *testing.T, name string, s *composeService) {
	t.Helper()
	p := &composeProcess{exited: make(chan struct{}), more: make(chan struct{})}
	var ports []string                                                                    // addresses in the file at which the service listens
	environ := append(cleanEnviron(), "MESSAGEHUB_DATA="+c.translate("/data", name, nil)) // deploy/Dockerfile sets MESSAGEHUB_DATA
	if !c.isNode(name) {
		environ = cleanEnviron()
	}
	for _, key := range slices.Sorted(maps.Keys(s.Environment)) {
		environ = append(environ, key+"="+c.translate(s.Environment[key], name, &ports))
	}
	args := make([]string, len(s.Command))
	for i, arg := range s.Command {
		args[i] = c.translate(arg, name, &ports)
	}
	p.cmd = exec.Command(program(t), args...)
	p.cmd.Env = environ
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails only if the process has already ended
		<-p.exited
	})
	c.processes[name], c.order = p, append(c.order, name)
	if name == "provision" {
		<-p.exited
		require.NoError(t, p.err, p.text())
		return
	}
	if len(ports) == 0 {
		return
	}
	p.await(t, regexp.MustCompile(`(?m)"msg":"ready"|^ready$`))
	if c.isNode(name) {
		c.addresses[name+":8080"] = strings.TrimPrefix(listens.FindStringSubmatch(p.text())[1], "http://")
		c.addresses[name+":8081"] = operatorsUse.FindStringSubmatch(p.text())[2]
	} else {
		c.addresses[name+":"+ports[0]] = greetedAddress.FindString(p.text())
	}
	c.checkHealth(t, name, s)
}

func (c *composeServices) isNode(name string) bool { return strings.HasPrefix(name, "hub-") }

// translate replaces addresses and folders in a text of the file by ones on
// this machine. It replaces an address at which the service itself listens by a
// free port, and adds the address to ports.
func (c *composeServices) translate(text, name string, ports *[]string) string {
	port, isListener := strings.CutPrefix(text, ":")
	if !isListener {
		port, isListener = strings.CutPrefix(text, name+":")
	}
	if isListener {
		*ports = append(*ports, port)
		if c.isNode(name) && port == "8081" {
			return "localhost:0" // differs from the first listener's text, so that two ports are opened
		}
		return "127.0.0.1:0"
	}
	for _, volume := range c.services[name].Volumes {
		parts := strings.Split(volume, ":")
		if rest, ok := strings.CutPrefix(text, parts[1]); ok {
			return filepath.Join(c.folder, parts[0], rest)
		}
	}
	for from, to := range c.addresses {
		text = strings.ReplaceAll(text, from, to)
	}
	return text
}

// checkHealth runs the health check of a service until it succeeds.
func (c *composeServices) checkHealth(t *testing.T, name string, s *composeService) {
	t.Helper()
	require.Greater(t, len(s.Healthcheck.Test), 2, name)
	require.Equal(t, []string{"CMD", "/usr/bin/messagehub", "health"}, s.Healthcheck.Test[:3])
	environ := cleanEnviron()
	for key, value := range s.Environment {
		if address, ok := c.addresses[name+value]; ok && strings.HasPrefix(value, ":") {
			value = address
		}
		environ = append(environ, key+"="+c.translate(value, name, nil))
	}
	var args []string
	for _, arg := range s.Healthcheck.Test[2:] {
		args = append(args, c.translate(arg, name, nil))
	}
	deadline := time.Now().Add(patience)
	for {
		cmd := exec.Command(program(t), args...)
		cmd.Env = environ
		out, err := cmd.CombinedOutput()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(deadline) && cmd.ProcessState.ExitCode() == exitFailed, "%s: %s\n%s", name, out, c.processes[name].text())
	}
}

// checkLogs fails if a service has logged a warning.
func (c *composeServices) checkLogs(t *testing.T) {
	t.Helper()
	for name, p := range c.processes {
		require.NotRegexp(t, `"level":"(WARN|ERROR)"|level=(WARN|ERROR)|(?i)warning:`, p.text(), name)
	}
}

// stopAll stops the services. It fails if a service ends with an error.
func (c *composeServices) stopAll(t *testing.T) {
	t.Helper()
	for _, name := range slices.Backward(c.order) {
		p := c.processes[name]
		if name != "provision" {
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
			select {
			case <-p.exited:
			case <-time.After(patience):
				t.Fatalf("%s still runs after %s\n%s", name, patience, p.text())
			}
		}
		require.NoError(t, p.err, "%s: %s", name, p.text())
	}
}

// A composeProcess is the process of a service. It records the output.
type composeProcess struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	err    error         // error returned by cmd.Wait; set before exited is closed

	mu      sync.Mutex
	written strings.Builder
	more    chan struct{} // more is closed and replaced after each write
}

// Write implements io.Writer.
func (p *composeProcess) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written.Write(text)
	close(p.more)
	p.more = make(chan struct{})
	return len(text), nil
}

func (p *composeProcess) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

// await waits until the output of the process matches.
func (p *composeProcess) await(t *testing.T, want *regexp.Regexp) {
	t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		more, found := p.more, want.MatchString(p.written.String())
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-p.exited:
			t.Fatalf("it ended before it wrote %s: %v\n%s", want, p.err, p.text())
		case <-deadline:
			t.Fatalf("it has not written %s after %s\n%s", want, patience, p.text())
		}
	}
}
