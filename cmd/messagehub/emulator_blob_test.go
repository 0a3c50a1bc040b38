package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/require"
)

// A blobProcess is an emulator in a separate process.
type blobProcess struct {
	cmd                 *exec.Cmd
	address, connection string
}

func startBlobs(t *testing.T, args ...string) *blobProcess {
	t.Helper()
	p := &blobProcess{cmd: exec.Command(program(t), append([]string{"emulator", "blob", "--listen", "127.0.0.1:0"}, args...)...)}
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	said, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	ready, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, readyRecord, ready)
	greeting, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	_, rest, _ := strings.Cut(strings.TrimSpace(greeting), "listens on ")
	p.address, p.connection, _ = strings.Cut(rest, " with connection string ")
	return p
}

func (p *blobProcess) stop(t *testing.T, signal os.Signal) error {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(signal))
	return p.cmd.Wait()
}

func (p *blobProcess) client(t *testing.T) *azblob.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := azblob.NewClientFromConnectionString(p.connection, &azblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	})
	require.NoError(t, err)
	return c
}

func TestBlobEmulator_KeepsBlobsOverARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	p := startBlobs(t, "--data", dir, "--container", "exchange")
	c := p.client(t)
	_, err := c.UploadBuffer(t.Context(), "exchange", "a/b", []byte("kept"), nil)
	require.NoError(t, err)
	_, err = c.CreateContainer(t.Context(), "another", nil)
	require.NoError(t, err)
	require.Error(t, p.stop(t, syscall.SIGKILL))

	p = startBlobs(t, "--data", dir)
	c = p.client(t)
	got, err := c.DownloadStream(t.Context(), "exchange", "a/b", nil)
	require.NoError(t, err)
	data, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	require.Equal(t, "kept", string(data))
	_, err = c.UploadBuffer(t.Context(), "another", "x", nil, nil)
	require.NoError(t, err)
	require.Equal(t, "ok\n", fetch(t, "http://"+p.address+"/healthz"))
	require.NoError(t, p.stop(t, syscall.SIGTERM))
}

func TestBlobEmulator_RejectsWrongOptions(t *testing.T) {
	for _, tc := range []struct {
		args   string
		status int
		says   string
	}{
		{"--in-memory --key %", 2, "in base64"},
		{"--in-memory --container X", 2, "want 3 to 63 characters"},
		{"--in-memory --listen nowhere", 2, "want HOST:PORT"},
		{"--in-memory --max-memory much", 2, `--max-memory "much": want a size`},
		{"--data /dev/null/x", 1, "not a directory"},
	} {
		got := messagehub(t, "", append([]string{"emulator", "blob"}, strings.Fields(tc.args)...)...)
		require.Equal(t, tc.status, got.status, tc.args)
		require.Contains(t, got.err, tc.says)
	}
}
