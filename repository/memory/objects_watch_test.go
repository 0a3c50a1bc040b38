package memory_test

import (
	"testing"

	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestObjectWatchesConformance(t *testing.T) {
	repositorytest.RunObjectWatches(t, func(*testing.T) repositorytest.WatchedObjects { return memory.NewObjects() })
}
