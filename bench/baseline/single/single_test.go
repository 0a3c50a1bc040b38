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

		// No drawers limit a run: it has up to 60,000 events, as many as six drawers
		// of the usual size.
		"-Next/a run for a new bundle yields up to the events of six drawers",
		// Numbers in Cosmos DB are doubles, and weights are stored as numbers. The
		// founders' weights had 32 bits.
		"-Weak/W16 a first event of the maximum weight leaves no room for another",

		// The suites for Ordering, Admin, Answer and Outbox are left out: the
		// layout keeps order only within a cabinet, and lacks the other ports.
	}
	if baselinetest.Raced {
		claims = append(claims,
			"-Save/10,000 events are returned from a full drawer",
			"-Save/10,001 events are returned in order from two drawers",
			"-Weak/W24 a bundle of 51,200 events is opened, repeated and acknowledged whole")
	}
	repositorytest.RunOnly(t, layout.Opener(t), claims...)
}

func TestBudget(t *testing.T) {
	baselinetest.Budget(t, layout, baselinetest.Costs{
		Save:    baselinetest.Cost{Requests: 3, Standard: 923.6, Pessimistic: 923.6}, // 7.4 RU per event
		Peek:    baselinetest.Cost{Requests: 3, Standard: 49.1, Pessimistic: 1025.7},
		Dequeue: baselinetest.Cost{Requests: 3, Standard: 16.4, Pessimistic: 16.4},
	})
}
