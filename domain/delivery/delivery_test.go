package delivery_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openMemory(_ *testing.T, clock *deliverytest.Clock) repositorytest.PushStores {
	cursors := memory.NewCursors(clock.Now)
	return repositorytest.PushStores{Streams: memory.NewStreams(21*24*time.Hour, clock.Now), Cursors: cursors, Shards: cursors, Nodes: memory.NewNodes(clock.Now)}
}

func TestConformance(t *testing.T) { deliverytest.Run(t, openMemory) }

func TestRandomFaults_KeepThePromises(t *testing.T) {
	deliverytest.Random(t, 60, openMemory)
}
