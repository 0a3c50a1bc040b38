package main

import (
	"bufio"
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/emulator"
)

var emulators = []string{"cosmos", "blob", "servicebus"}

// spawnEmulator starts an emulator and returns its address and its first line.
func spawnEmulator(t *testing.T, environ []string, args ...string) (address, greeting string) {
	t.Helper()
	cmd := exec.Command(program(t), append([]string{"emulator"}, args...)...)
	cmd.Args = append(cmd.Args, "--in-memory", "--listen", "127.0.0.1:0")
	cmd.Env = append(cleanEnviron(), environ...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	})
	greeting, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address = regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(greeting)
	require.NotEmpty(t, address, greeting)
	return address, greeting
}

func TestEmulators_AcceptOnlyLoopbackHosts(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for _, name := range emulators {
		address, _ := spawnEmulator(t, nil, name, "--host", "emulator.internal")
		_, port, _ := strings.Cut(address, ":")
		for host, accepted := range map[string]bool{
			"localhost:" + port: true, "127.0.0.1:" + port: true, "[::1]:" + port: true, "emulator.internal": true, "Emulator.Internal:1": true,
			"example.org": false, "example.org:" + port: false, "localhost.example.org": false, "127.0.0.1.example.org:" + port: false, "0.0.0.0": false,
		} {
			for _, path := range []string{"/", "/healthz", "/$servicebus/websocket"} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
				require.NoError(t, err)
				req.Host = host
				answer, err := client.Do(req)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				require.Equal(t, accepted, answer.StatusCode != http.StatusMisdirectedRequest, "%s %s by %s: %d", name, path, host, answer.StatusCode)
			}
		}
	}
}

func TestEmulators_RefuseOtherMachinesWithTheKnownKey(t *testing.T) {
	for _, name := range emulators {
		for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"} {
			got := messagehub(t, "", "emulator", name, "--in-memory", "--listen", address)
			require.Equal(t, 2, got.status, got.err)
			require.Contains(t, got.err, "its key is the well-known one")
			require.Contains(t, got.err, "--insecure")
		}
	}
	for _, flag := range []string{"--anonymous", "--trust-tokens"} {
		got := messagehub(t, "", "emulator", "servicebus", "--in-memory", "--listen", "0.0.0.0:0", "--key", "own", flag)
		require.Equal(t, 2, got.status, got.err)
		require.Contains(t, got.err, flag)
	}
}

func TestEmulators_ReadTheirKeyFromAFileOrTheEnvironment(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte("a key of its own"))
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	for _, name := range emulators {
		_, greeting := spawnEmulator(t, nil, name, "--key-file", file)
		require.NotContains(t, greeting, key)
		_, greeting = spawnEmulator(t, []string{emulator.KeyVariable + "=" + key}, name)
		require.NotContains(t, greeting, key)
		got := messagehub(t, "", "emulator", name, "--in-memory", "--key-file", file+".none")
		require.Equal(t, 1, got.status)
		require.Contains(t, got.err, "--key-file")
		got = messagehub(t, "", "emulator", name, "--in-memory", "--key-file", file, "--key", key)
		require.Equal(t, 2, got.status)
		require.NotContains(t, got.err, key)
	}
	address, _ := spawnEmulator(t, []string{emulator.KeyVariable + "=" + key}, "cosmos")
	credential, err := azcosmos.NewKeyCredential(key)
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey("http://"+address+"/", credential, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Retry: policy.RetryOptions{MaxRetries: -1},
	}})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, err = client.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "db"}, nil)
	require.NoError(t, err)
}

func TestEmulatorServiceBus_DoesNotPrintTheSecretOfAKey(t *testing.T) {
	got := messagehub(t, "", "emulator", "servicebus", "--in-memory", "--add-key", "name=verysecret:read")
	require.Equal(t, 2, got.status)
	require.NotContains(t, got.err, "verysecret")
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("verysecret\n"), 0o600))
	key, err := parseKey("name=@" + file + ":send+listen")
	require.NoError(t, err)
	require.Equal(t, "verysecret", key.Secret)
}
