package memory_test

import (
	"testing"

	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestObjectSweeps(t *testing.T) {
	repositorytest.RunObjectSweeps(t, func(_ *testing.T, keeping repository.ObjectKeeping) repository.ObjectLedger {
		return memory.NewObjectsWithRetention(keeping)
	})
}
