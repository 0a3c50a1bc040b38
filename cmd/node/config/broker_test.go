package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

func TestCase54_TheBrokerHasItsDefaultsAndRefusesWrongValues(t *testing.T) {
	require.Equal(t, config.Broker{
		MaxRetry: 5, RetryDelay: 5 * time.Second, FailSafe: config.FailSafeOn, RationalDelay: 2 * time.Second, TokenHeader: "X-Broker-Consumer-Token",
	}, config.Default().Broker)
	for yaml, want := range map[string]string{
		"max-retry: -1":                "want a whole number of 0 to 100",
		"max-retry: 101":               "want a whole number of 0 to 100",
		"retry-delay: soon":            "want a time of 10ms to 1h",
		"retry-delay: 0":               "want a time of 10ms to 1h",
		"rational-delay: 2h":           "want a time of 10ms to 1h",
		"fail-safe: maybe":             "want on, off or worker",
		"token-header: Webhook-Id":     "want the name of a header that is free",
		"token-header: Content-Length": "want the name of a header that is free",
		"token-header: 'a b'":          "want the name of a header that is free",
	} {
		_, err := load(t, "broker: {"+yaml+"}", nil)
		require.ErrorContains(t, err, want, yaml)
	}
	cfg, err := load(t, "broker: {max-retry: 0, retry-delay: 1, token-header: x-token}", nil)
	require.NoError(t, err)
	require.Equal(t, time.Second, cfg.Broker.RetryDelay)
	require.Equal(t, "X-Token", cfg.Broker.TokenHeader)
}
