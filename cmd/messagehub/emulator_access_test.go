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

// spawnEmulator starts an emulator, and returns its address and the first line
// of its output.
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
		require.Equal(t, 2, got.status)
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

// A wrong value must be rejected before a folder is created or a port is
// opened. The error must name the flag.
func TestEmulators_RefuseWrongValuesBeforeTheyOpenAnything(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	entities := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(entities, []byte("{\"Queues\": [\n  {\"Nam\": \"q\"}]}"), 0o600))
	spans := filepath.Join(t.TempDir(), "spans.json")
	require.NoError(t, os.WriteFile(spans, []byte(`{"Queues": [{"Name": "q", "Properties": {"LockDuration": "1 minute"}}]}`), 0o600))
	for command, want := range map[string]string{
		"cosmos --listen nope":                             `--listen: want HOST:PORT, such as 127.0.0.1:8081, got "nope"`,
		"blob --listen nope":                               `--listen: want HOST:PORT, such as 127.0.0.1:8081, got "nope"`,
		"servicebus --listen 127.0.0.1:0,nope":             `--listen: want HOST:PORT, such as 127.0.0.1:8081, got "nope"`,
		"cosmos --listen 127.0.0.1:http":                   `--listen: want a port from 0 to 65535, got "http"`,
		"cosmos --consistency Nope":                        `--consistency: want Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual, got "Nope"`,
		"cosmos --stale 3":                                 "--stale and --lag work in memory only; add --in-memory, or remove them",
		"cosmos --in-memory --stale -3":                    "--stale: want a whole number of at least 0, got -3",
		"cosmos --in-memory --query-steps -1":              "--query-steps: want a whole number of at least 0, got -1",
		"cosmos --in-memory --latency -1s":                 "--latency: want a time such as 2ms, got -1s",
		"cosmos --in-memory --sweep -1s":                   "--sweep: want a time such as 2ms, got -1s",
		"cosmos --in-memory --advertise here":              `--advertise: want HOST:PORT, such as 127.0.0.1:8081, got "here"`,
		"cosmos --key x":                                   "--key, --key-file or MESSAGEHUB_EMULATOR_KEY: want a key in base64, such as openssl rand -base64 32 prints",
		"blob --key %":                                     "--key, --key-file or MESSAGEHUB_EMULATOR_KEY: want a key in base64, such as openssl rand -base64 32 prints",
		"blob --container A":                               `--container: want 3 to 63 characters of a-z 0-9, with single dashes between them, got "A"`,
		"servicebus --entities nowhere":                    "--entities: open nowhere: no such file or directory",
		"servicebus --entities " + entities:                "--entities: " + entities + ": read entities: line 2, Queues[0].Nam: no such key; known are Name, Properties, Rules",
		"servicebus --entities " + spans:                   "--entities: " + spans + `: queue q: LockDuration "1 minute": want a duration such as PT30S`,
		"servicebus --add-key a=b:send,a=c:listen":         "--add-key: two keys have the name a; rename one of them",
		"servicebus --max-links many":                      `--max-links: want a whole number, got "many"`,
		"servicebus --token-timeout 0s":                    "--token-timeout 0s: want more than 0s, such as 10s",
		"cosmos --gateway x":                               `--gateway "x": want routing, compute or strict`,
		"cosmos --in-memory --lag 1s --consistency Strong": "--stale and --lag: an account with --consistency Strong has no old reads; choose Session, or remove them",
	} {
		args := append([]string{"emulator"}, strings.Fields(command)...)
		if !strings.Contains(command, "--listen") {
			args = append(args, "--listen", "127.0.0.1:0")
		}
		if !strings.Contains(command, "--in-memory") {
			args = append(args, "--data", folder)
		}
		got := messagehub(t, "", args...)
		require.Equal(t, 2, got.status, "%s\n%s", command, got.err)
		require.Contains(t, got.err, "messagehub: "+want, command)
		require.Contains(t, got.err, "\nmessagehub: see messagehub emulator ", command)
		require.Empty(t, got.out, command)
		require.NoDirExists(t, folder, command)
	}
}

func TestEmulators_RefuseAFolderWithInMemory(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	for _, name := range emulators {
		got := messagehub(t, "", "emulator", name, "--in-memory", "--data", folder, "--listen", "127.0.0.1:0")
		require.Equal(t, result{2, "", "messagehub: --data: --in-memory stores nothing in a folder; remove one of the two\n" +
			"messagehub: see messagehub emulator " + name + " --help\n"}, got)
	}
}

func TestEmulators_ExplainAnUnusableFolderOrPort(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, name := range emulators {
		got := messagehub(t, "", "emulator", name, "--listen", "127.0.0.1:0", "--data", file)
		require.Equal(t, 1, got.status)
		require.Contains(t, got.err, "messagehub: data folder "+file+": it is not a folder, or not in one; choose another with --data", name)
		got = messagehub(t, "", "emulator", name, "--listen", "192.0.2.1:0", "--in-memory", "--insecure")
		require.Equal(t, 1, got.status)
		require.Equal(t, "messagehub: listen on 192.0.2.1:0: this machine does not have that address; choose one of its own with --listen\n", got.err, name)
	}
}
