package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// An emulatorProcess is an emulator in a separate process.
type emulatorProcess struct {
	cmd    *exec.Cmd
	url    string
	log    *bytes.Buffer // output; must be read only after the process has ended
	exited chan error
}

func startEmulator(t *testing.T, args ...string) *emulatorProcess {
	t.Helper()
	e := &emulatorProcess{log: &bytes.Buffer{}, exited: make(chan error, 1)}
	e.cmd = exec.Command(program(t), append([]string{"emulator", "cosmos", "--listen", "127.0.0.1:0"}, args...)...)
	out, err := e.cmd.StdoutPipe()
	require.NoError(t, err)
	errs, err := e.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, e.cmd.Start())
	t.Cleanup(func() { _ = e.cmd.Process.Kill() })
	greeting, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	_, rest, _ := strings.Cut(greeting, "listens on ")
	e.url, _, _ = strings.Cut(rest, " ")
	lines := bufio.NewReader(errs)
	ready, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, readyRecord, ready)
	go func() {
		_, _ = io.Copy(e.log, lines)
		e.exited <- e.cmd.Wait()
	}()
	return e
}

func (e *emulatorProcess) stop(t *testing.T, signal os.Signal) error {
	t.Helper()
	require.NoError(t, e.cmd.Process.Signal(signal))
	return <-e.exited
}

// account returns a client of the emulator. Unless cert is "", the client
// trusts the certificate in the file cert.
func (e *emulatorProcess) account(t *testing.T, cert string) *azcosmos.Client {
	t.Helper()
	transport := &http.Transport{}
	if cert != "" {
		text, err := os.ReadFile(cert)
		require.NoError(t, err)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(text))
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	t.Cleanup(transport.CloseIdleConnections)
	health, err := (&http.Client{Transport: transport}).Get(e.url + "healthz")
	require.NoError(t, err)
	require.NoError(t, health.Body.Close())
	require.Equal(t, http.StatusOK, health.StatusCode)
	key, err := azcosmos.NewKeyCredential(embedded.WellKnownKey)
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey(e.url, key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1},
	}})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func newContainer(t *testing.T, account *azcosmos.Client) *azcosmos.ContainerClient {
	t.Helper()
	_, err := account.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "db"}, nil)
	require.NoError(t, err)
	db, err := account.NewDatabase("db")
	require.NoError(t, err)
	_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
		ID:                     "c",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
	}, nil)
	require.NoError(t, err)
	c, err := db.NewContainer("c")
	require.NoError(t, err)
	return c
}

func TestCosmosEmulator_KeepsAndExportsItsAccount(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "account")
	cert := filepath.Join(t.TempDir(), "trust.crt")
	e := startEmulator(t, "--data", dir, "--tls", "--cert", cert, "--log-requests")
	require.Regexp(t, "^https://", e.url)
	c := newContainer(t, e.account(t, cert))
	key := azcosmos.NewPartitionKeyString("p")
	for i := range 20 {
		_, err := c.CreateItem(t.Context(), key, fmt.Appendf(nil, `{"id":"%d","pk":"p"}`, i), nil)
		require.NoError(t, err)
	}
	require.Error(t, e.stop(t, syscall.SIGKILL))
	require.Regexp(t, `(?m)^POST /dbs/db/colls/c/docs 201 5\.6 RU \S+$`, e.log.String())

	e = startEmulator(t, "--data", dir)
	c, err := e.account(t, "").NewContainer("db", "c")
	require.NoError(t, err)
	_, err = c.ReadItem(t.Context(), key, "19", nil)
	require.NoError(t, err)
	locked := messagehub(t, "", "emulator", "cosmos", "check", "--data", dir)
	require.Equal(t, 1, locked.status)
	require.Contains(t, locked.err, "in use by another process")
	require.NoError(t, e.stop(t, syscall.SIGTERM), e.log.String())

	checked := messagehub(t, "", "emulator", "cosmos", "check", "--data", dir)
	require.Equal(t, 0, checked.status, checked.err)
	require.Contains(t, checked.out, "1 databases, 1 containers, 20 documents")
	exported := messagehub(t, "", "emulator", "cosmos", "export", "--data", dir)
	require.Equal(t, 0, exported.status, exported.err)
	require.Equal(t, 22, strings.Count(exported.out, "\n"))
	for line := range strings.Lines(exported.out) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	other := filepath.Join(t.TempDir(), "other")
	imported := messagehub(t, exported.out, "emulator", "cosmos", "import", "--data", other)
	require.Equal(t, result{0, "20 documents imported\n", ""}, imported)
	require.Equal(t, exported.out, messagehub(t, "", "emulator", "cosmos", "export", "--data", other).out)

	image := filepath.Join(other, "store.db")
	text, err := os.ReadFile(image)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(image, bytes.ReplaceAll(text, []byte(`{"id":"7","pk":"p"`), []byte(`{"id":"7","pk":"q"`)), 0o600))
	damaged := messagehub(t, "", "emulator", "cosmos", "check", "--data", other)
	require.Equal(t, 1, damaged.status)
	require.Contains(t, damaged.out, "1 problems")
}

func TestEmulator_HasTheRequestedThrottlingAndLatency(t *testing.T) {
	e := startEmulator(t, "--in-memory", "--throttle", "--stale", "3", "--lag", "1ms", "--latency", "1ms")
	c := newContainer(t, e.account(t, ""))
	refused := error(nil)
	for i := 0; refused == nil && i < 1000; i++ {
		_, refused = c.UpsertItem(t.Context(), azcosmos.NewPartitionKeyString("p"), fmt.Appendf(nil, `{"id":"a","pk":"p","data":"%0*d"}`, 100_000, 1), nil)
	}
	var throttled *azcore.ResponseError
	require.ErrorAs(t, refused, &throttled)
	require.Equal(t, http.StatusTooManyRequests, throttled.StatusCode)
	require.NotEmpty(t, throttled.RawResponse.Header.Get("x-ms-retry-after-ms"))
	require.NoError(t, e.stop(t, syscall.SIGTERM), e.log.String())
}

func TestCosmosEmulator_RejectsWrongOptions(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--gateway", "other"}, 2, "want routing, compute or strict"},
		{[]string{"--in-memory", "--cert", "x"}, 2, "--cert needs --tls"},
		{[]string{"--in-memory", "--key", "?"}, 2, "base64"},
		{[]string{"--stale", "3", "--data", t.TempDir()}, 2, "in memory only"},
		{[]string{"check", "--data", filepath.Join(t.TempDir(), "none")}, 1, "no account in"},
	} {
		got := messagehub(t, "", append([]string{"emulator", "cosmos"}, tc.args...)...)
		require.Equal(t, tc.status, got.status, tc.args)
		require.Contains(t, got.err, tc.says)
	}
}
