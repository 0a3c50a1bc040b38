package cosmos

import (
	"testing"

	"github.com/messagehub/messagehub/cosmos/embedded"
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

func TestRandomOperationsAsInMemory(t *testing.T) { repositorytest.Random(t, openConformance) }
