package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormatNumber_HasFourSignificantDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3: "3", 51_200: "51,200", -1234: "-1,234", 1e6: "1,000,000", 52_416.25: "52,416",
		12.3456: "12.35", 240.24: "240.2", 0.5: "0.5", 0.056_23: "0.05623", 0.1 + 0.2: "0.3", 999.96: "1,000", -123_456: "-123,456",
		0.000_02: "2e-05", math.Inf(1): "+Inf",
	} {
		require.Equal(t, want, FormatNumber(v))
	}
	require.Equal(t, "none", FormatNumber(math.NaN()))
}
