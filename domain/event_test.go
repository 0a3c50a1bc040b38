package domain_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

// validEvent returns a valid event, of which each test changes one field.
func validEvent() domain.Event {
	return domain.Event{
		ID:               must(domain.ParseEventID(someUUID)),
		Recipient:        actor("5790001330552"),
		Origin:           domain.TimeSeries,
		ContentType:      contentType("timeseries-v1"),
		DocumentType:     documentType("RSM012"),
		SupportsBundling: true,
		Weight:           3,
		Payload:          []byte(`{"kWh":12}`),
	}
}

func TestWeights(t *testing.T) {
	for _, kb := range []int64{1, 2, int64(domain.MaxBundleWeight), math.MaxInt32, math.MaxInt32 + 1, math.MaxInt64} {
		t.Run(fmt.Sprint("accepts ", kb), func(t *testing.T) {
			got, err := domain.NewWeight(kb)
			require.NoError(t, err)
			require.Equal(t, domain.Weight(kb), got)
		})
	}
	for _, kb := range []int64{0, -1, math.MinInt32, math.MinInt64} {
		t.Run(fmt.Sprint("refuses ", kb), func(t *testing.T) {
			got, err := domain.NewWeight(kb)
			requireInvalid(t, err, fmt.Sprintf("weight: want at least 1 (KB), got %d", kb))
			require.Zero(t, got)
		})
	}
}

func TestMaxBundleWeight_Is50Megabytes(t *testing.T) {
	require.Equal(t, domain.Weight(51_200), domain.MaxBundleWeight)
}

func TestW16_ASumOfWeightsNeverOverflows(t *testing.T) {
	for _, tc := range []struct{ a, b, want domain.Weight }{
		{0, 1, 1},
		{1, 2, 3},
		{math.MaxInt32, 1, math.MaxInt32 + 1},
		{math.MaxInt64 - 1, 1, math.MaxInt64},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, 0, math.MaxInt64},
		{math.MaxInt64/2 + 1, math.MaxInt64/2 + 1, math.MaxInt64},
	} {
		require.Equal(t, tc.want, tc.a.Add(tc.b), "%d + %d", tc.a, tc.b)
		require.Equal(t, tc.want, tc.b.Add(tc.a), "%d + %d", tc.b, tc.a)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Min(0).Draw(t, "a"), rapid.Int64Min(0).Draw(t, "b")
		want := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		require.Equal(t, domain.Weight(want.Int64()), domain.Weight(a).Add(domain.Weight(b)))
	})
}

func TestACabinetKey_HasRecipientOriginAndContentType(t *testing.T) {
	e := validEvent()
	key := e.Cabinet()
	require.Equal(t, domain.CabinetKey{Recipient: e.Recipient, Origin: e.Origin, ContentType: e.ContentType}, key)

	e.DocumentType, e.Weight, e.SupportsBundling, e.Payload = documentType("other"), 9, false, nil
	require.Equal(t, key, e.Cabinet(), "only these fields matter")
	e.ContentType = contentType("timeseries-v2")
	require.NotEqual(t, key, e.Cabinet())
}
