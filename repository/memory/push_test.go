package memory_test

import (
	"testing"

	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestPushConformance(t *testing.T) {
	repositorytest.RunPush(t, func(_ *testing.T, o repositorytest.PushOptions) repositorytest.PushStores {
		cursors := memory.NewCursors(o.Clock)
		resources := memory.NewResources(o.Clock)
		return repositorytest.PushStores{
			Streams: memory.NewStreams(repositorytest.PushRetention, o.Clock), Cursors: cursors, Shards: cursors,
			Definitions: memory.NewDefinitions().CountChangesIn(cursors).StoreChangesIn(resources), Parties: memory.NewParties().StoreChangesIn(resources), Nodes: memory.NewNodes(o.Clock),
			Watches: memory.NewWatches(cursors), Resources: resources, Changes: resources,
		}
	})
}
