package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// chartSettings returns the settings, written by the tests of the Helm chart,
// for which choose returns true. It replaces their addresses and folders by
// ones for this test.
func chartSettings(t *testing.T, choose func(settings map[string]any) bool) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../deploy/helm/messagehub/ci/settings.yaml")
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "admin-token"), []byte(operatorToken), 0o600))
	moved := strings.NewReplacer(": :8080\n", ": 127.0.0.1:0\n", ": :8081\n", ": localhost:0\n", ": /data/hub\n", ": "+dataFolder(t)+"\n", "/etc/messagehub/secrets/", folder+"/")
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(moved.Replace(string(text)))))
	for {
		var document struct{ Settings map[string]any }
		err := decoder.Decode(&document)
		require.False(t, errors.Is(err, io.EOF), "the chart makes no such settings")
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1:0", document.Settings["listen"])
		isDecorated := document.Settings["ordering"] != nil
		if !isDecorated && document.Settings["insecure"] == true && document.Settings["tls"] == nil && choose(document.Settings) {
			return document.Settings
		}
	}
}

// Helm install prints NOTES.txt. Each command in it must be valid.
func TestChartNotes_HaveOnlyCommandsThatAreAccepted(t *testing.T) {
	text, err := os.ReadFile("../../deploy/helm/messagehub/templates/NOTES.txt")
	require.NoError(t, err)
	commands := commandsOf(regexp.MustCompile(`{{[^{}]*}}`).ReplaceAllString(string(text), "value"))
	require.NotEmpty(t, commands)
	for _, words := range commands {
		require.NoError(t, acceptCommand(words), strings.Join(words, " "))
	}
}

// startChartHub starts a hub with the command of the chart's pod, and waits
// until the hub is ready.
func startChartHub(t *testing.T, settings map[string]any, environ ...string) *hubProcess {
	t.Helper()
	text, err := yaml.Marshal(settings)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "messagehub.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	h := spawnCommand(t, environ, program(t), "serve", "--config", file)
	require.NoError(t, h.waitReady())
	admin := "http://" + adminAddress(t, h, "http")
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} { // paths that the chart's probes and monitor request
		resp, err := http.Get(admin + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode, path)
	}
	require.Equal(t, 0, messagehub(t, "", "check", "--url", admin).status)
	return h
}

const chartEvent = `{"id":"7a1c1b6e-0d39-4a55-8f0e-0d6f5f5f9a02","recipient":"` + actorA + `","origin":"Charges","contentType":"c","documentType":"d","supportsBundling":true,"weight":1,"payload":{"a":1}}`

func TestChart_EmbeddedHubServes(t *testing.T) {
	h := startChartHub(t, chartSettings(t, func(settings map[string]any) bool { return settings["cosmos"] == nil }))
	require.Zero(t, messagehub(t, chartEvent, "send", "--url", h.url(t), "-").status)
	require.Zero(t, messagehub(t, "", "health", "--ready", "--url", h.url(t)).status, "the command of helm test")
	require.NotContains(t, h.stderrText(), `"level":"WARN"`)
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
}

func TestChart_ReplicasOnAzureShareTheirData(t *testing.T) {
	settings := chartSettings(t, func(settings map[string]any) bool { return settings["production"] == true })
	identity, certificates := newManagedIdentity(t), t.TempDir()
	emulate := func(name string, args ...string) (address string) {
		address, _ = spawnEmulator(t, nil, append([]string{name, "--tls", "--cert", filepath.Join(certificates, name+".crt")}, args...)...)
		return address
	}
	endpoints := map[string]string{
		"cosmos": "https://" + emulate("cosmos") + "/", "servicebus": emulate("servicebus", "--trust-tokens"),
		"blob": "https://" + emulate("blob", "--trust-tokens") + "/devstoreaccount1",
	}
	for section, name := range map[string]string{"cosmos": "endpoint", "servicebus": "namespace", "blob": "endpoint"} {
		require.Contains(t, settings[section], name)
		settings[section].(map[string]any)[name] = endpoints[section]
	}
	environ := append(identity.environ(), "SSL_CERT_DIR="+certificates, "SSL_CERT_FILE=/dev/null")
	provision := exec.CommandContext(t.Context(), program(t), "provision")
	provision.Env = append(cleanEnviron(), append(environ, "MESSAGEHUB_COSMOS_ENDPOINT="+endpoints["cosmos"],
		"MESSAGEHUB_SERVICEBUS_NAMESPACE="+endpoints["servicebus"], "MESSAGEHUB_BLOB_ENDPOINT="+endpoints["blob"])...)
	out, err := provision.CombinedOutput()
	require.NoError(t, err, string(out))

	first, second := startChartHub(t, settings, environ...), startChartHub(t, settings, environ...)
	require.Zero(t, messagehub(t, chartEvent, "send", "--url", first.url(t), "-").status)
	got := messagehub(t, "", "peek", "--url", second.url(t), "--actor", actorA)
	require.Zero(t, got.status, got.err)
	require.Contains(t, got.out, `"payload":{"a":1}`)
	for _, h := range []*hubProcess{first, second} {
		require.NotContains(t, h.stderrText(), `"level":"WARN"`)
		require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
	}
}
