package node_test

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// A misplacedSecret is a value that contains a secret, and that an operator may
// assign to the wrong setting.
type misplacedSecret struct{ name, value, secret string }

func listMisplacedSecrets() []misplacedSecret {
	sum := sha512.Sum512([]byte("canary"))
	key := base64.StdEncoding.EncodeToString(sum[:])
	short := base64.StdEncoding.EncodeToString(sum[:32])
	escaped := url.QueryEscape(short)
	const password = "canary-pass/word"
	return []misplacedSecret{
		{"a connection string of a namespace", "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=hub;SharedAccessKey=" + short, short},
		{"a signature for a namespace", "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessSignature=SharedAccessSignature sr=ns&sig=" + escaped + "&se=1&skn=hub", escaped},
		{"a connection string of Cosmos DB", "AccountEndpoint=https://a.documents.azure.com:443/;AccountKey=" + key + ";", key},
		{"a connection string of a storage account", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + key + ";EndpointSuffix=core.windows.net", key},
		{"a URL with a signature", "https://a.blob.core.windows.net/c?sv=2024&sp=rw&sig=" + escaped, escaped},
		{"a URL with a password", "https://kim:" + password + "@a.documents.azure.com:443/", password},
		{"a name with a key", "AccountKey=canary", "canary"},
		{"a long key", key, key},
		{"a short key", short, short},
		{"a key without padding", strings.TrimRight(key, "="), strings.TrimRight(key, "=")},
		{"a token that a hub made", "messagehub-YKAB2SP4DFYGV5GM6ILCPQCICH", "YKAB2SP4DFYGV5GM6ILCPQCICH"},
	}
}

// keyNames returns the names of all settings.
func keyNames() []string {
	var names []string
	for line := range strings.Lines(config.Default().String()) {
		name, _, _ := strings.Cut(line, " = ")
		names = append(names, name)
	}
	return names
}

// A settingsLoader loads settings in which a key has this value. has is false
// if the loader cannot set the key.
type settingsLoader func(t *testing.T, key, value string) (cfg config.Config, err error, has bool)

var settingsLoaders = map[string]settingsLoader{
	"file": func(t *testing.T, key, value string) (config.Config, error, bool) {
		section, name, nested := strings.Cut(key, ".")
		text := fmt.Sprintf("%s: '%s'\n", key, value)
		if nested {
			text = fmt.Sprintf("%s:\n  %s: '%s'\n", section, name, value)
		}
		file := filepath.Join(t.TempDir(), "hub.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		cfg, err := config.Load(config.Inputs{File: file})
		return cfg, err, true
	},
	"environment": func(_ *testing.T, key, value string) (config.Config, error, bool) {
		name := "MESSAGEHUB_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
		cfg, err := config.Load(config.Inputs{Environ: []string{name + "=" + value}})
		return cfg, err, true
	},
	"flag": func(t *testing.T, key, value string) (config.Config, error, bool) {
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		config.AddFlags(flags)
		name := strings.ReplaceAll(key, ".", "-")
		if flags.Lookup(name) == nil {
			return config.Config{}, nil, false
		}
		require.NoError(t, flags.Parse([]string{"--" + name + "=" + value}))
		cfg, err := config.Load(config.Inputs{Flags: flags})
		return cfg, err, true
	},
}

func TestMisplacedSecret_IsNeverShown(t *testing.T) {
	secretKeys := []string{"cosmos.key", "servicebus.connection", "blob.key", "bus.key", "exchange.key", "admin.token", "push.secret-key", "console.client-secret", "console.session-key"}
	names := keyNames()
	require.Greater(t, len(names), 25)
	tried := 0
	for _, key := range names {
		for _, m := range listMisplacedSecrets() {
			for way, load := range settingsLoaders {
				cfg, err, has := load(t, key, m.value)
				if !has {
					continue
				}
				tried++
				about := fmt.Sprintf("%s in %s by %s", m.name, key, way)
				if err != nil {
					require.NotContains(t, err.Error(), m.secret, about)
				}
				if slices.Contains(secretKeys, key) {
					require.NotContains(t, printSettings(&cfg), m.secret, about)
					continue
				}
				require.ErrorContains(t, err, "the value holds a secret, so it is not shown; put it in ", about)
				require.ErrorContains(t, err, key, about)
				require.NotContains(t, err.Error(), "\n", "one fault, %s", about)
			}
		}
	}
	require.Greater(t, tried, 600)
}

// printSettings returns everything that the hub prints and logs about its
// settings.
func printSettings(cfg *config.Config) string {
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("settings", "config", *cfg)
	return cfg.String() + log.String() + strings.Join(cfg.Warnings(), "\n")
}

func TestMisplacedSecret_ErrorNamesItsSetting(t *testing.T) {
	values := listMisplacedSecrets()
	for _, tc := range []struct {
		key   string
		value misplacedSecret
		want  string
	}{
		{"servicebus.namespace", values[0], "servicebus.connection (MESSAGEHUB_SERVICEBUS_CONNECTION)"},
		{"cosmos.endpoint", values[2], "cosmos.key (MESSAGEHUB_COSMOS_KEY)"},
		{"blob.endpoint", values[3], "blob.key (MESSAGEHUB_BLOB_KEY)"},
		{"blob.endpoint", values[4], "blob.key (MESSAGEHUB_BLOB_KEY)"},
		{"listen", values[0], "servicebus.connection (MESSAGEHUB_SERVICEBUS_CONNECTION)"},
		{"listen", values[8], "whichever it is for"},
		{"data", values[10], "admin.token (MESSAGEHUB_ADMIN_TOKEN)"},
	} {
		_, err, _ := settingsLoaders["environment"](t, tc.key, tc.value.value)
		require.ErrorContains(t, err, tc.want)
	}
	_, err, _ := settingsLoaders["flag"](t, "listen", values[0].value)
	require.ErrorContains(t, err, "other users can read a command line")
}

func TestMisplacedSecret_OfSettingsInCodeIsNotShown(t *testing.T) {
	for _, m := range listMisplacedSecrets() {
		for what, set := range map[string]func(*config.Config){
			"listen": func(c *config.Config) { c.Listen = m.value }, "data": func(c *config.Config) { c.Data, c.InMemory = m.value, false },
			"cosmos.endpoint": func(c *config.Config) { c.Cosmos.Endpoint = m.value }, "cosmos.database": func(c *config.Config) { c.Cosmos.Database = m.value },
			"servicebus.namespace": func(c *config.Config) { c.ServiceBus.Namespace = m.value }, "blob.endpoint": func(c *config.Config) { c.Blob.Endpoint = m.value },
			"bus-listen": func(c *config.Config) { c.BusListen = m.value }, "blob.container": func(c *config.Config) { c.Blob.Container = m.value },
		} {
			cfg := settings("")
			set(&cfg)
			var log safeBuffer
			_, err := node.Open(t.Context(), cfg, node.Options{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			require.Error(t, err, what)
			require.NotContains(t, err.Error()+log.String()+printSettings(&cfg), m.secret, "%s as %s", m.name, what)
			require.NoDirExists(t, m.value)
		}
	}
}

func TestMisplacedSecret_OfAFileThatIsNotYAMLIsNotShown(t *testing.T) {
	for _, m := range listMisplacedSecrets() {
		for what, format := range map[string]string{
			"the whole file": "%s", "a key": "'%s': x", "a key without quotes": "%s: x", "an alias": "listen: *%s", "a section": "servicebus: {'%s': 1}",
			"no end": "listen: '%s", "a tag": "listen: !%s x", "a list": "listen: ['%s']", "a name of a domain": "domains: [{name: '%s'}]",
			"a key of a domain": "domains: [{'%s': x}]", "a queue of a domain": "domains: [{name: Charges, queue: '%s'}]", "twice": "listen: x\nlisten: '%s'\nlog: {level: '%[1]s'}",
		} {
			file := filepath.Join(t.TempDir(), "hub.yaml")
			require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, format, m.value), 0o600))
			cfg, err := config.Load(config.Inputs{File: file})
			require.Error(t, err, "%s as %s", m.name, what)
			require.NotContains(t, err.Error()+printSettings(&cfg), m.secret, "%s as %s", m.name, what)
		}
	}
}
