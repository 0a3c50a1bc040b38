package original_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/baseline/internal/baselinetest"
	"github.com/messagehub/messagehub/bench/baseline/original"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var layout = baselinetest.Layout{
	Provision: original.Provision,
	New: func(client *azcosmos.Client, content repository.Content, o repositorytest.Options) (baselinetest.Store, error) {
		return original.New(client, baselinetest.Database, original.Options{Content: content, Clock: o.Clock, DrawerCapacity: o.DrawerCapacity})
	},
}

func TestConformance(t *testing.T) {
	claims := []string{
		"Save", "Next", "Bundle", "Race", "Weak",

		// An id is unique for the whole hub.
		"-Save/one id for two recipients is two events",
		// Content is compared without document type and payload; and which of two
		// events with one id comes first is not settled if they are of two cabinets.
		"-Save/an id with other content is a conflict, alone, in every field",
		"-Save/an id with another payload is a conflict",
		"-Weak/W15 what two fields hold is not mixed up, nor what is not there",
		// Twins that are under way at the same time may both take themselves for new.
		"-Weak/W7 duplicates within one Save are stored once, wherever the drawers end",

		// Its watermark is one for the hub, so it does not know who has a mailbox.
		"-Next/no data of a recipient without a mailbox has an error of its own",
		// It does not know how much waits beyond what it has read.
		"-Next/the backlog counts what waits in the groups asked for, open bundles included",
		"-Bundle/an open bundle is found by its id, with its events and no others",
		"-Race/W5 the events of one Save become visible together, in all their cabinets",
		"-Weak/W24 a bundle of 51,200 events is opened, repeated and acknowledged whole",

		// Nothing tells an outdated run from a new one, so what was acknowledged
		// meanwhile is delivered twice.
		"-Bundle/a run from before an Acknowledge opens nothing",
		"-Bundle/a run from before an Acknowledge in another cabinet of the group opens nothing",
		"-Race/concurrent savers and actors lose, double and reorder nothing",
		// The query in the place of the trigger is not one with the create.
		"-Race/W14 of concurrent Peeks one wins, and the others find its bundle",
		// A bundle is replaced without a condition.
		"-Race/W12 of concurrent Acknowledges exactly one succeeds",

		// A number of Cosmos is a double, and a weight is a number here, of 32 bits in
		// the original.
		"-Weak/W16 a first event of the greatest weight makes no room for more",

		// It holds, but it takes long, and the rule of 10,001 events holds as well.
		"-Save/10,000 events come back from a full drawer",

		// Nothing is claimed of Waiting, since it does not know how much waits; of
		// Ordering, since only the order within a cabinet is kept; nor of Admin,
		// Answer and Outbox, which the layout has not.
	}
	if baselinetest.Raced {
		claims = append(claims, "-Save/10,001 events come back in order from two drawers")
	}
	repositorytest.RunOnly(t, layout.Opener(t), claims...)
}

func TestBudget(t *testing.T) {
	baselinetest.Budget(t, layout, baselinetest.Costs{
		Save:    baselinetest.Cost{Requests: 255, Standard: 1645.4, Pessimistic: 1647.4}, // 13.2 RU for an event
		Peek:    baselinetest.Cost{Requests: 11, Standard: 64.2, Pessimistic: 1042.7},
		Dequeue: baselinetest.Cost{Requests: 8, Standard: 56.4, Pessimistic: 62.4},
	})
}

// The worst case in small: a bundle that takes all of six drawers but a part of the last.
func TestABundleTakesSixDrawers(t *testing.T) {
	stores := layout.Opener(t)(t, repositorytest.Options{DrawerCapacity: 100})
	actor := repositorytest.NewActor()
	events := repositorytest.Events(620, actor, repositorytest.Weighing(domain.MaxBundleWeight/512))
	for from := 0; from < len(events); from += 100 {
		_, err := stores.Events.Save(t.Context(), actor, events[from:min(from+100, len(events))])
		require.NoError(t, err)
	}
	for _, want := range [][]domain.Event{events[:512], events[512:]} {
		peeked, err := repositorytest.Peek(t.Context(), stores, actor, repositorytest.AllGroups, domain.BundleID{})
		require.NoError(t, err)
		again, err := repositorytest.Peek(t.Context(), stores, actor, repositorytest.AllGroups, domain.BundleID{})
		require.NoError(t, err)
		require.Equal(t, peeked.Events, again.Events)
		require.Len(t, peeked.Events, len(want))
		for i := range want {
			require.Equal(t, want[i].ID, peeked.Events[i].ID)
		}
		_, err = stores.Bundles.Acknowledge(t.Context(), actor, peeked.ID)
		require.NoError(t, err)
	}
	_, err := stores.Events.NextUnacknowledged(t.Context(), actor, repositorytest.AllGroups)
	require.ErrorIs(t, err, domain.ErrNoData)
}

func TestABatchIsForAnyRecipients(t *testing.T) {
	a := layout.Account(t, account.Options{}, 10_000)
	line := a.Line()
	client, err := a.Client(line)
	require.NoError(t, err)
	defer client.Close()
	r, err := original.New(client, baselinetest.Database, original.Options{})
	require.NoError(t, err)
	var batch []domain.Event
	for range 20 {
		batch = append(batch, repositorytest.Event(repositorytest.NewActor()))
	}
	_, err = r.Watermark(t.Context(), domain.ActorID{}) // and the client gets to know the account
	require.NoError(t, err)
	before := line.Count()
	saved, err := r.Ingest(t.Context(), batch)
	require.NoError(t, err)
	require.Equal(t, repository.Saved{Accepted: 20}, saved)
	require.EqualValues(t, 2+20*6, line.Count().Since(before).Requests, "the watermark is read and written once")
	stores := repositorytest.Stores{Events: r, Bundles: r}
	for _, e := range batch {
		peeked, err := repositorytest.Peek(t.Context(), stores, e.Recipient, repositorytest.AllGroups, domain.BundleID{})
		require.NoError(t, err)
		require.Len(t, peeked.Events, 1)
		require.Equal(t, e.ID, peeked.Events[0].ID)
	}
}
