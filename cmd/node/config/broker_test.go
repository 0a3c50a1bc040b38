package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBrokerSettings_AreRefusedOutsideTheirBounds(t *testing.T) {
	var header headerValue
	for _, text := range []string{"", "a b", "x:y", "Content-Type", "webhook-id", "X-Broker-Message-ID", "host"} {
		require.Error(t, header.Set(text), text)
	}
	require.NoError(t, header.Set("x-token"))
	require.Equal(t, "X-Token", header.String())

	var retries retryValue
	for _, text := range []string{"", "-1", "101", "5.5"} {
		require.Error(t, retries.Set(text), text)
	}
	require.NoError(t, retries.Set("0"))

	var pause pauseValue
	for _, text := range []string{"", "0", "2h", "-5s", "9ms"} {
		require.Error(t, pause.Set(text), text)
	}
	require.NoError(t, pause.Set("2"))
	require.Equal(t, pauseValue(2*time.Second), pause)
}

func TestTheAddressOfTheWorker_IsOneThatMayHaveTheToken(t *testing.T) {
	var address hubURL
	for _, text := range []string{"", "hub.example.org", "ftp://hub.example.org", "https://", "https://a:b@hub.example.org", "https://hub.example.org/?a", "https://hub.example.org/#a", "/broker"} {
		require.Error(t, address.Set(text), text)
	}
	require.NoError(t, address.Set("https://hub.example.org/hubs/"))
	require.Equal(t, "https://hub.example.org/hubs", address.String())

	for _, tc := range []struct {
		name   string
		change func(*Config)
		want   string // "": the configuration is valid
	}{
		{"nothing", func(*Config) {}, ""},
		{"https", func(c *Config) { c.Broker.RetriggerURL = "https://hub.example.org" }, ""},
		{"http", func(c *Config) { c.Broker.RetriggerURL = "http://hub.example.org" }, "http shows the token of the operators"},
		{"http where nobody else is", func(c *Config) { c.Broker.RetriggerURL, c.Insecure = "http://hub.example.org", true }, ""},
		{"http on this machine", func(c *Config) { c.Broker.RetriggerURL = "http://127.0.0.1:8080" }, ""},
		{"a certificate, and no worker", func(c *Config) { c.TLS = TLS{"a", "b"} }, ""},
		{"a certificate for another name than 127.0.0.1", func(c *Config) {
			c.TLS, c.Broker.FailSafe = TLS{"a", "b"}, FailSafeWorker
		}, "needs the address for which tls.certificate is"},
	} {
		c := Default()
		tc.change(&c)
		err := c.Validate()
		if tc.want == "" {
			require.NoError(t, err, tc.name)
		} else {
			require.ErrorContains(t, err, tc.want, tc.name)
		}
	}
}
