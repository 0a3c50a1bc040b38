package memory_test

import (
	"testing"

	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestJobsConformance(t *testing.T) {
	repositorytest.RunJobs(t, func(*testing.T) repository.Jobs { return memory.NewJobs() })
}
