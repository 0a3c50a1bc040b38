package node

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

func TestPlanDescriptors_LeavesAQuarterToFiles(t *testing.T) {
	for limit, want := range map[int]descriptorPlan{
		64:      {hub: 32, bus: 8, blobs: 8},
		256:     {hub: 128, bus: 32, blobs: 32},
		1024:    {hub: 512, bus: 128, blobs: 128},
		20_000:  {hub: 14_000, bus: 1000, blobs: 1000},
		1 << 30: {hub: 14_000, bus: 1000, blobs: 1000},
	} {
		require.Equal(t, want, planDescriptors(limit), limit)
	}
}

func TestWaitingPeeks_LeaveAQuarterOfTheConnections(t *testing.T) {
	for _, tc := range []struct{ waiting, connections, want int }{
		{10_000, 14_000, 10_000}, // expected with the default limits
		{10_000, 512, 384},       // expected with ulimit -n 1024
		{100, 512, 100},
		{10_000, 1, 1},
	} {
		var log bytes.Buffer
		cfg := config.Default()
		cfg.Limits.Waiting = tc.waiting
		require.Equal(t, tc.want, waitingPeeks(&cfg, tc.connections, slog.New(slog.NewTextHandler(&log, nil))))
		if tc.want == tc.waiting {
			require.Empty(t, log.String())
		} else {
			require.Contains(t, log.String(), "limits.connections")
		}
	}
}
