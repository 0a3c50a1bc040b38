package simulate

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withReceivers lists seeds in which hubs call receivers.
var withReceivers = []uint64{10023, 10030}

func TestHubs_CallReceiversOverTheirOwnConnections(t *testing.T) {
	for _, seed := range withReceivers {
		r := Simulate(t, Options{Seed: seed, Trace: true})
		require.NoError(t, r.Err, "seed %d", seed)
		require.Positive(t, r.Coverage["a hub called a receiver by a connection of its own"], "seed %d", seed)
		trace := strings.Join(r.Trace, "\n")
		for _, port := range []string{strconv.Itoa(cosmosPort + 1), blobPort} {
			require.Contains(t, trace, "dials "+receiverAddress+":"+port+" → connected", "seed %d", seed)
		}
	}
}
