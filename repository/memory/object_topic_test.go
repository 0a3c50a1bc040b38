package memory_test

import (
	"testing"

	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestObjectTopicConformance(t *testing.T) {
	repositorytest.RunObjectTopic(t, func(*testing.T) (repositorytest.WatchedObjects, repository.ObjectTopic) {
		store := memory.NewObjects()
		return store, store.Topic()
	})
}
