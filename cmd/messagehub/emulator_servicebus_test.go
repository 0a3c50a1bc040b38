package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
)

// A busProcess is an emulator in a separate process.
type busProcess struct {
	cmd        *exec.Cmd
	address    string
	connection string
	log        chan string // receives the whole output after the process has ended
}

func startBus(t *testing.T, args ...string) *busProcess {
	t.Helper()
	p := &busProcess{log: make(chan string, 1)}
	p.cmd = exec.Command(program(t), append([]string{"emulator", "servicebus", "--listen", "127.0.0.1:0"}, args...)...)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	said, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	lines := bufio.NewReader(said)
	ready, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, readyRecord, ready)
	greeting, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	_, rest, _ := strings.Cut(strings.TrimSpace(greeting), "listens on ")
	p.address, p.connection, _ = strings.Cut(rest, " with connection string ")
	go func() {
		text, _ := io.ReadAll(lines)
		p.log <- string(text)
	}()
	return p
}

// stop ends the process and returns its output.
func (p *busProcess) stop(t *testing.T, signal os.Signal) (string, error) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(signal))
	text := <-p.log
	return text, p.cmd.Wait()
}

func (p *busProcess) client(t *testing.T, o *azservicebus.ClientOptions) *azservicebus.Client {
	t.Helper()
	c, err := azservicebus.NewClientFromConnectionString(p.connection, o)
	require.NoError(t, err)
	return c
}

func TestBusEmulator_KeepsMessagesOverARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bus")
	entities := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(entities, []byte(`{"Queues": [{"Name": "q"}]}`), 0o600))
	cert := filepath.Join(t.TempDir(), "trust.crt")
	p := startBus(t, "--data", dir, "--entities", entities, "--tls", "--cert", cert, "--log-frames")
	text, err := os.ReadFile(cert)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(text))
	c := p.client(t, &azservicebus.ClientOptions{NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
		return (&tls.Dialer{Config: &tls.Config{RootCAs: roots}}).DialContext(ctx, "tcp", p.address)
	}})
	s, err := c.NewSender("q", nil)
	require.NoError(t, err)
	require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("kept")}, nil))
	said, err := p.stop(t, syscall.SIGKILL)
	require.Error(t, err)
	require.Regexp(t, `(?m)^\d+ <- \d+ transfer .*\+\d+$`, said)
	_ = c.Close(context.Background())

	p = startBus(t, "--data", dir)
	c = p.client(t, nil)
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	m, err := r.ReceiveMessages(t.Context(), 1, nil)
	require.NoError(t, err)
	require.Equal(t, "kept", string(m[0].Body))
	require.Equal(t, "ok\n", fetch(t, "http://"+p.address+"/healthz"))
	metrics := fetch(t, "http://"+p.address+"/metrics")
	require.Contains(t, metrics, "servicebus_connections 1\n")
	require.Contains(t, metrics, "servicebus_entities 1\n")
	require.NoError(t, c.Close(t.Context()))
	said, err = p.stop(t, syscall.SIGTERM)
	require.NoError(t, err, said)
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

func TestBusEmulator_RejectsWrongOptions(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.json")
	for _, tc := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--in-memory", "--cert", "x"}, 2, "--cert needs --tls"},
		{[]string{"--in-memory", "--add-key", "name"}, 2, "want NAME=SECRET:RIGHTS"},
		{[]string{"--in-memory", "--add-key", "a=b:read"}, 2, "want send, listen or manage"},
		{[]string{"--in-memory", "--max-connections", "0"}, 2, "--max-connections 0: want a whole number of at least 1"},
		{[]string{"--in-memory", "--max-buffered", "much"}, 2, `--max-buffered "much": want a size`},
		{[]string{"--in-memory", "--token-timeout", "0s"}, 2, "--token-timeout 0s: want more than 0s"},
		{[]string{"--in-memory", "--entities", missing}, 2, "no such file"},
		{[]string{"--data", missing + "/\x00"}, 1, "invalid argument"},
		{[]string{"--in-memory", "--listen", "nowhere"}, 2, "want HOST:PORT"},
	} {
		got := messagehub(t, "", append([]string{"emulator", "servicebus"}, tc.args...)...)
		require.Equal(t, tc.status, got.status, tc.args)
		require.Contains(t, got.err, tc.says)
	}
}
