package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

func TestMisplacedSecret_OnTheCommandLineIsNotShown(t *testing.T) {
	const key = "Q2FuYXJ5IGNhbmFyeSBjYW5hcnkgY2FuYXJ5IDEyMzQ1Ng=="
	values := map[string]string{
		"a connection string": "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=hub;SharedAccessKey=" + key,
		"an account":          "AccountEndpoint=https://a.documents.azure.com:443/;AccountKey=" + key,
		"a signature":         "https://a.blob.core.windows.net/?sig=" + strings.ReplaceAll(key, "=", "%3D"),
		"a password":          "https://kim:" + strings.TrimRight(key, "=") + "@hub.example:x/",
		"a key":               key,
	}
	for name, value := range values {
		for _, args := range [][]string{
			{value},
			{"serve", value},
			{"serve", "--" + value},
			{"serve", "-" + value},
			{"serve", "--config", value},
			{"serve", "--servicebus-namespace", value},
			{"serve", "--servicebus-sessions", value},
			{"serve", "--in-memory=" + value},
			{"check", "--url", value},
			{"check", "--data", value},
			{"check", "--actor", value, "--url", "http://127.0.0.1:1"},
			{"queue", "show", value},
			{"queue", "show", "--url", value, actorA},
			{"queue", "show", "--timeout", value, actorA},
			{"queue", "show", "--data", value, actorA},
			{"peek", "--actor", value},
			{"peek", "--actor", actorA, "--url", value},
			{"dequeue", "--actor", actorA, value},
			{"send", value},
			{"send", "--url", value, "-"},
			{"domain", "--name", value},
			{"emulator", "cosmos", value},
			{"emulator", "servicebus", "--in-memory", "--listen", value},
			{"demo", "--events", value},
		} {
			got := runWith(t, nil, args...)
			require.NotEqual(t, 0, got.status, args)
			require.NotContains(t, got.out+got.err, strings.TrimRight(key, "="), "%s as %v", name, args)
		}
	}
}

func TestHubURL_IsShownWithoutItsPassword(t *testing.T) {
	got := runWith(t, []string{tokenVariable + "=" + operatorToken}, "queue", "show", "--url", "http://kim:s3cret@127.0.0.1:1", actorA)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "no hub listens at http://127.0.0.1:1;")
	require.NotContains(t, got.err, "s3cret")

	c, err := hubclient.New("https://kim:s3cret@hub.example")
	require.NoError(t, err)
	req, err := c.Request(t.Context(), "GET", "/v1/peek", actorA, nil)
	require.NoError(t, err)
	_, password, _ := req.BasicAuth()
	require.Equal(t, "s3cret", password, "a proxy in front of the hub may need it")
}

func TestLog_ShowsNoSecretInAnError(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		err := fmt.Errorf("dial: %w", errors.New(`parse "https://kim:s3cret@a.example/": invalid port`))
		newLogger(format, slog.LevelInfo, &out).Warn("no connection", "error", err, "of", slog.GroupValue(slog.Any("error", err)))
		require.NotContains(t, out.String(), "s3cret")
		require.Equal(t, 2, strings.Count(out.String(), "[redacted]"), out.String())
	}
}
