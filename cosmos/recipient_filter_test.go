package cosmos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// kindsOf returns one event of each of some kinds.
func kindsOf(actor domain.ActorID, kinds int) []domain.Event {
	events := make([]domain.Event, kinds)
	for i := range events {
		events[i] = repositorytest.Event(actor, repositorytest.Typed(fmt.Sprint("kind-", i)))
	}
	return events
}

// TestAColdSaveOfManyKinds_CostsUpToThreeTimesAWarmOne saves to a recipient with many cabinets,
// by a node that knows it and by nodes that do not.
func TestAColdSaveOfManyKinds_CostsUpToThreeTimesAWarmOne(t *testing.T) {
	for _, tc := range []struct{ kinds, batches, tails int }{
		{5, 20, 24}, {10, 20, 24}, {10, 20, 0}, {40, 10, 24}, {100, 5, 24}, {100, 5, 0}, {999, 1, 24}, {999, 3, 0}, {999, 20, 24},
	} {
		if testing.Short() && tc.kinds > 100 {
			continue
		}
		t.Run(fmt.Sprintf("%d kinds, %d in each, %d in a tail", tc.kinds, tc.batches, tc.tails), func(t *testing.T) {
			r := newRig(t, embedded.Options{Pessimistic: true})
			actor := repositorytest.NewActor()
			opts := Options{TailEvents: tc.tails, SweepEvery: -1}
			node := r.node(opts, true)
			for range tc.batches {
				_, err := node.Save(t.Context(), actor, kindsOf(actor, tc.kinds))
				require.NoError(t, err)
				node.Settle(t.Context(), actor)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			save := func(by *Repository) saveCost {
				requests, units := r.engine.Requests(), r.engine.RequestUnits()
				_, err := by.Save(context.Background(), actor, kindsOf(actor, tc.kinds)[rng.IntN(tc.kinds):][:1])
				require.NoError(t, err)
				by.Settle(context.Background(), actor)
				return saveCost{r.engine.Requests() - requests, r.engine.RequestUnits() - units}
			}
			var warm, cold saveCost
			const nodes, saves = 8, 12
			for range nodes {
				for range saves {
					cost := save(node)
					warm.requests, warm.units = warm.requests+cost.requests, warm.units+cost.units
				}
				cost := save(r.node(opts, false))
				t.Logf("cold %+v", cost)
				cold.requests, cold.units = cold.requests+cost.requests, cold.units+cost.units
			}
			mean := warm.units / nodes / saves
			t.Logf("warm %.1f RU, %.2f requests, cold %.1f RU, %.1f requests: %.2f times",
				mean, float64(warm.requests)/nodes/saves, cold.units/nodes, float64(cold.requests)/nodes, cold.units/nodes/mean)
			assert.LessOrEqual(t, cold.units/nodes, 3*mean)
		})
	}
}

// A node that has adopted the filter of a recipient finds the events behind it: those of pages
// that were written since, and those that another node saves while it is at work.
func TestTheFilterOfARecipient_IsReadOnFromItsSlots(t *testing.T) {
	const kinds = 9
	for _, tails := range []int{0, 2, 24} {
		t.Run(fmt.Sprintf("%d in a tail", tails), func(t *testing.T) {
			s := newTrust(t)
			opts := Options{TailEvents: tails, SweepEvery: -1}
			first := s.node(opts, true)
			var all []domain.Event
			save := func(by *Repository, n int) {
				events := kindsOf(s.actor, kinds)[:n]
				all = append(all, events...)
				s.save(by, 0, events)
				by.Settle(t.Context(), s.actor)
			}
			for range 30 {
				save(first, kinds)
			}
			drawers, _, _, err := first.begin("test").readRecipientFilter(t.Context(), s.actor)
			require.NoError(t, err)
			require.NotEmpty(t, drawers)
			second := s.node(opts, true)
			save(second, 1)
			silent := s.node(opts, false) // stores no filter
			for range 28 {
				save(silent, 3)
			}
			for _, by := range []*Repository{s.node(opts, false), second, first, s.node(opts, true)} {
				saved, err := by.Save(t.Context(), s.actor, all)
				require.NoError(t, err)
				require.Equal(t, repository.Saved{Duplicates: len(all)}, saved)
				save(by, kinds)
				save(silent, 2)
			}
			require.NoError(t, s.mended(s.actor))
		})
	}
}
