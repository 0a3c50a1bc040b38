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
