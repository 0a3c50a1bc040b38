package single_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench/baseline/internal/baselinetest"
	"github.com/messagehub/messagehub/bench/baseline/single"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var layout = baselinetest.Layout{
	Provision: single.Provision,
	New: func(client *azcosmos.Client, content repository.Content, o repositorytest.Options) (baselinetest.Store, error) {
		return single.New(client, baselinetest.Database, single.Options{Content: content, Clock: o.Clock})
	},
}

func TestConformance(t *testing.T) {
	claims := []string{
		"Save", "Next", "Bundle", "Race", "Weak", "Backlog",

		// There are no drawers that could limit a run: it has 60,000 events at most,
		// which is what six drawers of the usual size hold.
		"-Next/a run for a new bundle yields at most what six drawers hold",
		// A number of Cosmos is a double, and a weight is a number here. The founders'
		// weights were of 32 bits.
		"-Weak/W16 a first event of the greatest weight makes no room for more",

		// Nothing is claimed of Ordering, since only the order within a cabinet is kept,
		// nor of Admin, Answer and Outbox, which the layout has not.
	}
	if baselinetest.Raced {
		claims = append(claims,
			"-Save/10,000 events come back from a full drawer",
			"-Save/10,001 events come back in order from two drawers",
			"-Weak/W24 a bundle of 51,200 events is opened, repeated and acknowledged whole")
	}
	repositorytest.RunOnly(t, layout.Opener(t), claims...)
}

func TestBudget(t *testing.T) {
	baselinetest.Budget(t, layout, baselinetest.Costs{
		Save:    baselinetest.Cost{Requests: 3, Standard: 923.6, Pessimistic: 923.6}, // 7.4 RU for an event
		Peek:    baselinetest.Cost{Requests: 3, Standard: 49.1, Pessimistic: 1025.7},
		Dequeue: baselinetest.Cost{Requests: 3, Standard: 16.4, Pessimistic: 16.4},
	})
}
