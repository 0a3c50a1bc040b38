package brokerrig

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBroadcast_ReturnsWhenAllDeliveriesAreStored(t *testing.T) {
	r, err := Open(t.Context(), Options{Consumers: 2})
	require.NoError(t, err)
	r.Run(t.Context())
	require.NoError(t, r.Broadcast(t.Context(), 30, 10))
	require.EqualValues(t, 60, r.cursors.sumSettled())
	require.Positive(t, r.RequestUnits())
	require.NoError(t, r.Close())
}

func TestHangingConsumers_AreCalledUpToTheirLimit(t *testing.T) {
	r, err := Open(t.Context(), Options{Consumers: 2, Hangs: true})
	require.NoError(t, err)
	require.NoError(t, r.Append(t.Context(), 100))
	r.Run(t.Context())
	require.NoError(t, r.AwaitCalls(t.Context()))
	require.Zero(t, r.cursors.sumSettled())
	require.NoError(t, r.Close())
}
