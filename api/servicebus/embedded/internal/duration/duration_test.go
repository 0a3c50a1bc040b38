package duration_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/duration"
)

func TestParse_ReadsXMLDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT30S": 30 * time.Second, "PT1M": time.Minute, "PT1H30M": 90 * time.Minute, "P14D": 14 * 24 * time.Hour, "P1W": 7 * 24 * time.Hour,
		"P1DT12H": 36 * time.Hour, "PT0.5S": 500 * time.Millisecond, "PT0S": 0, duration.Longest: math.MaxInt64,
	} {
		got, err := duration.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "P", "PT", "1M", "P1M", "P1Y", "PT1", "PTS", "PT1S1S", "PT-1S", "P1DT", "PT1.2.3S", "00:01:00"} {
		_, err := duration.Parse(text)
		require.Error(t, err, text)
	}
}

func TestFormat_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(1000*24*time.Hour/time.Millisecond)).Draw(t, "ms")) * time.Millisecond
		got, err := duration.Parse(duration.Format(d))
		require.NoError(t, err)
		require.Equal(t, d, got.Round(time.Millisecond))
	})
}
