package memory_test

import (
	"testing"

	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestObjectsConformance(t *testing.T) {
	open := func(*testing.T) repository.Objects { return memory.NewObjects() }
	repositorytest.RunObjects(t, open)
	repositorytest.RandomObjects(t, open, 100)
}
