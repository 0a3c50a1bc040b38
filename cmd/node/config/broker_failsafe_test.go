package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRetriggerURL_MustProtectTheToken(t *testing.T) {
	for text, want := range map[string]string{
		"hub.example.org":           "want a URL without a query",
		"/broker":                   "want a URL without a query",
		"ftp://hub.example.org":     "want a URL without a query",
		"https://":                  "want a URL without a query",
		"https://hub.example.org/?": "want a URL without a query",
		"https://hub.example.org#a": "want a URL without a query",
		"http://hub.example.org":    "with http, the network can read the token of the operators",
	} {
		_, err := load(t, "broker: {retrigger-url: '"+text+"'}", nil)
		require.ErrorContains(t, err, want, text)
	}
	for yaml, want := range map[string]string{
		"broker: {retrigger-url: 'https://hub.example.org/hubs/'}":                                             "https://hub.example.org/hubs",
		"insecure: true\nbroker: {retrigger-url: 'http://hub.example.org'}":                                    "http://hub.example.org",
		"broker: {retrigger-url: 'http://127.0.0.1:8080', fail-safe: worker}":                                  "http://127.0.0.1:8080",
		"tls: {certificate: a, key: b}\nbroker: {fail-safe: off}":                                              "",
		"broker: {fail-safe: worker}":                                                                          "",
		"tls: {certificate: a, key: b}\nbroker: {retrigger-url: 'https://hub.example.org', fail-safe: worker}": "https://hub.example.org",
	} {
		cfg, err := load(t, yaml, nil)
		require.NoError(t, err, yaml)
		require.Equal(t, want, cfg.Broker.RetriggerURL)
	}
	_, err := load(t, "tls: {certificate: a, key: b}\nbroker: {fail-safe: worker}", nil)
	require.ErrorContains(t, err, "needs the address for which tls.cert is")
}
