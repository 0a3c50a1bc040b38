package memory_test

import (
	"testing"

	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestPushConformance(t *testing.T) {
	repositorytest.RunPush(t, func(_ *testing.T, o repositorytest.PushOptions) repositorytest.PushStores {
		cursors := memory.NewCursors(o.Clock)
		return repositorytest.PushStores{
			Streams: memory.NewStreams(repositorytest.PushRetention, o.Clock), Cursors: cursors, Shards: cursors,
			Definitions: memory.NewDefinitions().NoteIn(cursors), Parties: memory.NewParties(), Nodes: memory.NewNodes(o.Clock),
		}
	})
}
