package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

func TestSettings_NameTheOriginOfEachKey(t *testing.T) {
	c, err := load(t, "listen: 127.0.0.1:1001\nlog:\n  format: json\nadmin: {token: abcdefghijklmnop}\n",
		[]string{"MESSAGEHUB_LOG_LEVEL=error", "MESSAGEHUB_PUSH_SECRET_KEY_FILE=" + writeSecret(t)}, "--data", "here")
	require.NoError(t, err)
	settings := c.Settings()
	require.Len(t, settings, strings.Count(c.String(), "\n"))
	find := func(name string) config.Setting {
		i := slices.IndexFunc(settings, func(s config.Setting) bool { return s.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		s := settings[i]
		require.NotEmpty(t, s.Usage)
		require.NotContains(t, s.Usage, "`")
		s.Usage = ""
		return s
	}
	for _, want := range []config.Setting{
		{Name: "listen", Value: "127.0.0.1:1001", Origin: config.ByFile, From: "hub.yaml line 1", Variable: "MESSAGEHUB_LISTEN"},
		{Name: "log.format", Value: "json", Origin: config.ByFile, From: "hub.yaml line 3", Variable: "MESSAGEHUB_LOG_FORMAT"},
		{Name: "log.level", Value: "error", Origin: config.ByEnvironment, From: "MESSAGEHUB_LOG_LEVEL", Variable: "MESSAGEHUB_LOG_LEVEL"},
		{Name: "data", Value: "here", Origin: config.ByFlag, From: "--data", Variable: "MESSAGEHUB_DATA"},
		{Name: "in-memory", Value: "false", Origin: config.ByDefault, From: "the default", Variable: "MESSAGEHUB_IN_MEMORY"},
		{Name: "admin.token", Value: "[redacted]", IsSecret: true, Origin: config.ByFile, From: "hub.yaml line 4", Variable: "MESSAGEHUB_ADMIN_TOKEN"},
		{Name: "push.secret-key", Value: "[redacted]", IsSecret: true, Origin: config.ByEnvironment, From: "the file of push.secret-key-file", Variable: "MESSAGEHUB_PUSH_SECRET_KEY"},
		{Name: "cosmos.key", IsSecret: true, Origin: config.ByDefault, From: "the default", Variable: "MESSAGEHUB_COSMOS_KEY"},
	} {
		require.Equal(t, want, find(want.Name))
	}
}

// writeSecret writes to a file a key that encrypts the secrets of
// subscriptions, and returns the file's path.
func writeSecret(t *testing.T) string {
	path := t.TempDir() + "/push.key"
	require.NoError(t, os.WriteFile(path, []byte("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), 0o600))
	return path
}

func TestSettings_ShowNoSecretInAnotherKey(t *testing.T) {
	c := config.Default()
	c.Cosmos.Endpoint = "https://user:password@a.example/"
	for _, s := range c.Settings() {
		require.NotContains(t, s.Value, "password", s.Name)
		if s.Name == "cosmos.endpoint" {
			require.True(t, s.IsSecret)
		}
	}
}
