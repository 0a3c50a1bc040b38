package config_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/cmd/node/config"
)

// chartFolder contains the Helm chart. The module .ci/deploy renders the chart
// with every combination of its options, and writes the resulting settings to a
// file that this test reads.
const chartFolder = "../../../deploy/helm/messagehub"

func TestChart_MakesSettingsThatTheHubAccepts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartFolder, "ci/settings.yaml"))
	require.NoError(t, err)
	secrets := t.TempDir()
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, secret := range map[string]string{
		"admin-token": "a-token-for-operators", "push-secret-key": key, "console-client-secret": "hush", "console-session-key": key, "cosmos-key": key, "blob-key": key,
		"servicebus-connection": "Endpoint=sb://emulator.example/;SharedAccessKeyName=hub;SharedAccessKey=" + key,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(secrets, name), []byte(secret), 0o600))
	}
	decoder, n := yaml.NewDecoder(bytes.NewReader(text)), 0
	for ; ; n++ {
		var document struct {
			Variables []string
			Settings  yaml.Node
		}
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		settings, err := yaml.Marshal(&document.Settings)
		require.NoError(t, err)
		environ := make([]string, len(document.Variables))
		for i, name := range document.Variables {
			environ[i] = name + "=" + key
		}
		cfg, err := load(t, strings.ReplaceAll(string(settings), "/etc/messagehub/secrets", secrets), environ)
		require.NoError(t, err, "%s", settings)
		require.Empty(t, cfg.Warnings(), "%s", settings)
		require.True(t, cfg.HasOperatorListener())
		require.Equal(t, cfg.Embedded(), cfg.UsesFolder(), "%s", settings)
	}
	require.Greater(t, n, 20)
}

// ownSettings lists the settings that are not values of the chart. The chart
// itself sets some of them. Others are secrets, which must not be in a
// ConfigMap. The chart's preStop hook replaces drain-delay.
var ownSettings = []string{
	"listen", "admin-listen", "bus-listen", "blob-listen", "data", "in-memory", "drain-delay",
	"tls.cert", "tls.key", "tls.client-ca",
	"admin.token", "admin.token-file", "cosmos.key", "cosmos.key-file", "servicebus.connection", "servicebus.connection-file",
	"blob.key", "blob.key-file", "push.secret-key", "push.secret-key-file", "bus.key", "exchange.key",
	"console.client-secret", "console.client-secret-file", "console.session-key", "console.session-key-file",
}

// The schema of the chart's values must contain the same settings as the table
// of keys. Then Helm rejects a misspelt setting before it reaches a cluster.
func TestChart_KnowsEverySetting(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartFolder, "values.schema.json"))
	require.NoError(t, err)
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var schema struct {
		Properties struct{ Config object }
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	known := make(map[string]bool)
	for section, inner := range schema.Properties.Config.Properties {
		var o object
		require.NoError(t, json.Unmarshal(inner, &o))
		if len(o.Properties) == 0 {
			known[section] = true
		}
		for name := range o.Properties {
			known[section+"."+name] = true
		}
	}
	want := make(map[string]bool)
	for line := range strings.Lines(config.Default().String()) {
		name, _, _ := strings.Cut(line, " = ")
		if !slices.Contains(ownSettings, name) {
			want[name] = true
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(known)))
}
