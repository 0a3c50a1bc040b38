package node

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlanDescriptors_LeavesAQuarterToFiles(t *testing.T) {
	for limit, want := range map[int]descriptorPlan{
		64:      {hub: 32, bus: 8, blobs: 8},
		256:     {hub: 128, bus: 32, blobs: 32},
		1024:    {hub: 512, bus: 128, blobs: 128},
		20_000:  {hub: 12_000, bus: 1000, blobs: 1000},
		1 << 30: {hub: 12_000, bus: 1000, blobs: 1000},
	} {
		require.Equal(t, want, planDescriptors(limit), limit)
	}
}
