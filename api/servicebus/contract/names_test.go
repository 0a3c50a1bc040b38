package contract_test

import (
	"io"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contract"
)

func TestAnOriginHasAQueueForEachPurpose(t *testing.T) {
	for origin, want := range map[string]contract.Queues{
		"TimeSeries":     {"timeseries", "timeseries-reply", "timeseries-dequeue"},
		"Charges":        {"charges", "charges-reply", "charges-dequeue"},
		"MarketRoles":    {"marketroles", "marketroles-reply", "marketroles-dequeue"},
		"MeteringPoints": {"meteringpoints", "meteringpoints-reply", "meteringpoints-dequeue"},
		"Aggregations":   {"wholesale", "wholesale-reply", "wholesale-dequeue"},
		"Settlements":    {"settlements", "settlements-reply", "settlements-dequeue"},
	} {
		require.Equal(t, want, contract.DefaultQueues(origin))
	}
}

func TestParseOrigin_AcceptsNamesAndNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"Charges": "Charges", "1": "Charges",
		"TimeSeries": "TimeSeries", "2": "TimeSeries",
		"Wholesale": "Aggregations", "Aggregations": "Aggregations", "3": "Aggregations",
		"MarketRoles": "MarketRoles", "4": "MarketRoles",
		"MeteringPoints": "MeteringPoints", "5": "MeteringPoints",
		"Settlements": "Settlements",
		"wholesale":   "wholesale", // names are compared case-sensitively
		"0":           "0", "6": "6", "99": "99", "": "",
	} {
		require.Equal(t, want, contract.ParseOrigin(text), "%q", text)
	}
}

func TestOnlyAggregationsHasAnotherNameOnTheWire(t *testing.T) {
	require.Equal(t, "Wholesale", contract.WireOrigin("Aggregations"))
	for _, origin := range []string{"Charges", "TimeSeries", "MarketRoles", "MeteringPoints", "Settlements", "Wholesale"} {
		require.Equal(t, origin, contract.WireOrigin(origin))
	}
}

func TestProperties_EqualThoseOfTheOriginal(t *testing.T) {
	at := time.Date(2026, 3, 1, 13, 30, 15, 999, time.FixedZone("CET", 3600))
	id := uuid.MustParse("0B9F4C5E-7A52-4D57-9D0C-3F1E6B8A2C41")
	require.Equal(t, map[string]any{
		"OperationTimestamp":     "2026-03-01T12:30:15Z",
		"OperationCorrelationId": "bundle_actor",
		"MessageVersion":         int32(1),
		"MessageType":            "Dequeue",
		"EventIdentification":    "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41",
	}, contract.Properties(contract.Dequeue, "bundle_actor", at, id))
}

func TestEncodeIDs_UsesTheByteOrderOfDotNet(t *testing.T) {
	ids := []uuid.UUID{
		uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"),
		uuid.MustParse("0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"),
	}
	list := contract.EncodeIDs(ids)
	require.Equal(t, fromText(t, `
		33221100 5544 7766 8899 aabbccddeeff
		5e4c9f0b 527a 574d 9d0c 3f1e6b8a2c41`), list)

	read, err := contract.DecodeIDs(list)
	require.NoError(t, err)
	require.Equal(t, ids, read)
}

func TestIDList_MayBeEmpty(t *testing.T) {
	require.Empty(t, contract.EncodeIDs(nil))
	ids, err := contract.DecodeIDs(nil)
	require.NoError(t, err)
	require.Empty(t, ids)
}

func TestDecodeIDs_RejectsATruncatedList(t *testing.T) {
	list := contract.EncodeIDs([]uuid.UUID{uuid.New(), uuid.New()})
	for n := 1; n < len(list); n++ {
		if n == 16 {
			continue
		}
		ids, err := contract.DecodeIDs(list[:n])
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
		require.Nil(t, ids)
	}
}

func TestContentName_IsTheNameOfTheOriginal(t *testing.T) {
	require.Equal(t, "bundle_actor_data", contract.ContentName("bundle_actor"))
}
