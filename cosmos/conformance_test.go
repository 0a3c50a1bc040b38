package cosmos

import (
	"testing"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func openConformance(t *testing.T, o repositorytest.Options) repositorytest.Stores {
	r := newRig(t, embedded.Options{})
	return r.stores(r.node(Options{DrawerCapacity: o.DrawerCapacity, Clock: o.Clock}, true))
}

func TestConformance(t *testing.T) { repositorytest.Run(t, openConformance) }

func TestConformanceWithoutHints(t *testing.T) {
	repositorytest.Run(t, func(t *testing.T, o repositorytest.Options) repositorytest.Stores {
		r := newRig(t, embedded.Options{})
		return r.stores(r.node(Options{DrawerCapacity: o.DrawerCapacity, Clock: o.Clock}, false))
	})
}

func TestRandomOperationsAsInMemory(t *testing.T) {
	oracle := func(_ *testing.T, o repositorytest.Options) repositorytest.Stores {
		s := memory.New(memory.Options{DrawerCapacity: o.DrawerCapacity, Clock: o.Clock})
		return repositorytest.Stores{Events: s, Bundles: s, Content: s}
	}
	repositorytest.Random(t, oracle, openConformance)
}
