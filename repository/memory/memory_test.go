package memory_test

import (
	"testing"

	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestConformance(t *testing.T) { repositorytest.Run(t, open) }

// Random compares the in-memory store with itself, and must find no difference.
func TestRandom(t *testing.T) { repositorytest.Random(t, open, open) }

func open(_ *testing.T, o repositorytest.Options) repositorytest.Stores {
	s := memory.New(memory.Options{DrawerCapacity: o.DrawerCapacity, Ordering: o.Ordering, Clock: o.Clock, Retention: o.Retention})
	return repositorytest.Stores{Events: s, Bundles: s, Content: s, Admin: s, Answers: s, Outbox: s, Dequeues: s, Watches: s, Survey: s, Finder: s, Letters: s, Sweep: s.Sweep, Lose: s.Lose}
}

func TestContent(t *testing.T) {
	repositorytest.RunContent(t, func(*testing.T) repository.Content { return memory.NewContent() })
}

func BenchmarkStore(b *testing.B) {
	repositorytest.Benchmark(b, func(_ *testing.B, o repositorytest.Options) repositorytest.Stores {
		return open(nil, o)
	})
}
