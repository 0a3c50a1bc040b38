package cosmos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A saveCost is the cost of a Save of one event.
type saveCost struct {
	requests int64
	units    float64
}

func (r *rig) costOfSave(node *Repository, actor domain.ActorID) saveCost {
	r.t.Helper()
	requests, units := r.engine.Requests(), r.engine.RequestUnits()
	_, err := node.Save(context.Background(), actor, repositorytest.Events(1, actor))
	require.NoError(r.t, err)
	cost := saveCost{r.engine.Requests() - requests, r.engine.RequestUnits() - units}
	node.AwaitHints(context.Background(), actor)
	return cost
}

// TestAColdSave_CostsUpToThreeTimesAWarmOne fills drawers with pages of several sizes, and saves
// through nodes that do not know the recipient.
func TestAColdSave_CostsUpToThreeTimesAWarmOne(t *testing.T) {
	for _, tc := range []struct{ stored, perSave int }{
		{1, 1}, {10, 1}, {100, 1}, {1000, 1}, {4000, 1}, {1000, 24}, {9000, 24}, {20_000, 125}, {9999, 1000}, {100_000, 1000},
	} {
		if testing.Short() && tc.stored > 10_000 {
			continue
		}
		t.Run(fmt.Sprintf("%d in Saves of %d", tc.stored, tc.perSave), func(t *testing.T) {
			r := newRig(t, embedded.Options{Pessimistic: true})
			actor := repositorytest.NewActor()
			node := r.node(Options{}, true)
			for n := 0; n < tc.stored; n += tc.perSave {
				_, err := node.Save(t.Context(), actor, repositorytest.Events(min(tc.perSave, tc.stored-n), actor))
				require.NoError(t, err)
			}
			node.AwaitHints(t.Context(), actor)
			r.costOfSave(node, actor)
			warm := r.costOfSave(node, actor)
			for range 3 {
				cold := r.costOfSave(r.node(Options{}, false), actor)
				t.Logf("warm %+v, cold %+v", warm, cold)
				assert.LessOrEqual(t, cold.units, 3*warm.units)
				assert.LessOrEqual(t, cold.requests, 3*warm.requests)
			}
		})
	}
}

// TestSave_KnowsEveryReceivedEventByAnyNode saves to one recipient through several nodes, in small
// drawers and in two cabinets, partly at the same time, and counts the accepted events. Some nodes run
// from the start, some keep no index in memory, and some have just started.
func TestSave_KnowsEveryReceivedEventByAnyNode(t *testing.T) {
	seeds := 16
	switch {
	case raced:
		seeds = 8
	case triesEveryCase:
		seeds = 200
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { saveByManyNodes(t, rand.New(rand.NewPCG(uint64(seed), 7))) })
		})
	}
}

func saveByManyNodes(t *testing.T, rng *rand.Rand) {
	t.Helper()
	r := newRig(t, embedded.Options{})
	actor := repositorytest.NewActor()
	capacity := []int{1, 3, 20, 60}[rng.IntN(4)]
	kinds := []Options{{}, {IndexBytes: 1}, {IndexBytes: 30_000}, {TailEvents: 2}, {TailEvents: 7, IndexBytes: 1}, {TailEvents: 24, IndexBytes: 30_000}}
	node := func() *Repository {
		opts := kinds[rng.IntN(len(kinds))]
		opts.DrawerCapacity, opts.SweepEvery = capacity, -1
		return r.node(opts, rng.IntN(4) > 0)
	}
	nodes := []*Repository{node(), node(), node()}
	var all []domain.Event
	for range 25 {
		if rng.IntN(3) == 0 {
			nodes[rng.IntN(len(nodes))] = node()
		}
		// Concurrent Saves have some events in common, and either Save may accept them.
		var fresh []domain.Event
		for range rng.IntN(2*capacity + 10) {
			from := []domain.Origin{domain.TimeSeries, domain.Charges}[rng.IntN(2)]
			fresh = append(fresh, repositorytest.Event(actor, repositorytest.WithOrigin(from)))
		}
		added, sent := make(map[domain.EventID]bool), 0
		var accepted, duplicates atomic.Int64
		var saves sync.WaitGroup
		for range 1 + rng.IntN(2) {
			var batch []domain.Event
			for _, e := range fresh {
				if rng.IntN(3) > 0 {
					added[e.ID] = true
					batch = append(batch, e)
				}
			}
			var conflicts []int
			for range rng.IntN(capacity + 5) {
				if len(all) == 0 {
					break
				}
				e := all[rng.IntN(len(all))]
				if rng.IntN(4) == 0 {
					e.Weight++
					conflicts = append(conflicts, len(batch))
				}
				batch = append(batch, e)
			}
			sent += len(batch) - len(conflicts)
			by := nodes[rng.IntN(len(nodes))]
			saves.Go(func() {
				saved, err := by.Save(context.Background(), actor, batch)
				assert.NoError(t, err)
				assert.Equal(t, conflicts, saved.Conflicts)
				accepted.Add(int64(saved.Accepted))
				duplicates.Add(int64(saved.Duplicates))
			})
		}
		saves.Wait()
		require.EqualValues(t, len(added), accepted.Load())
		require.EqualValues(t, sent-len(added), duplicates.Load())
		for _, e := range fresh {
			if added[e.ID] {
				all = append(all, e)
			}
		}
	}
	for _, n := range nodes {
		n.AwaitHints(context.Background(), actor)
	}
	require.NoError(t, r.repairMailbox(actor))
}

// If a node stops, the filter of a drawer may cover only a part of the drawer.
func TestAFilterThatLags_IsCompletedFromThePages(t *testing.T) {
	for _, more := range []int{3, 23, 30, 80} { // further events: within the drawer, up to its end, and in later drawers
		s := newTrust(t)
		opts := Options{DrawerCapacity: 40}
		stopped := s.node(opts, true)
		var all []domain.Event
		save := func(node *Repository) {
			events := repositorytest.Events(1, s.actor)
			all = append(all, events...)
			s.save(node, 0, events)
		}
		for range 17 {
			save(stopped)
		}
		stopped.AwaitHints(t.Context(), s.actor)
		cabinet := all[0].Cabinet()
		var doc blockFilterDoc
		_, err := stopped.beginCall("test").Read(t.Context(), stopped.db.cabinets, cabinetKey(cabinet), drawerSegment(1).documentID(), &doc)
		require.NoError(t, err)
		require.Equal(t, 16, doc.Count)
		require.False(t, doc.Sealed)
		other := s.node(opts, false)
		for range more {
			save(other)
		}
		for _, node := range []*Repository{s.node(opts, false), s.node(opts, true), other, stopped} {
			saved, err := node.Save(t.Context(), s.actor, all)
			require.NoError(t, err)
			require.Equal(t, repository.Saved{Duplicates: len(all)}, saved)
			node.AwaitHints(t.Context(), s.actor)
		}
		require.NoError(t, s.repairMailbox(s.actor))
	}
}

// TestAColdSaveWithTails_CostsUpToThreeTimesAWarmOne saves single events into the tail. The cost of a
// warm Save is a mean, because one Save in 24 flushes the tail.
func TestAColdSaveWithTails_CostsUpToThreeTimesAWarmOne(t *testing.T) {
	opts := Options{TailEvents: 24}
	for _, stored := range []int{10, 100, 1000, 4000} {
		t.Run(fmt.Sprint(stored), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, embedded.Options{Pessimistic: true})
				actor := repositorytest.NewActor()
				node := r.node(opts, true)
				requests, units := r.engine.Requests(), r.engine.RequestUnits()
				for range stored {
					r.costOfSave(node, actor)
				}
				mean := (r.engine.RequestUnits() - units) / float64(stored)
				t.Logf("a warm Save costs %.1f RU and %.2f requests in the mean, filters counted", mean, float64(r.engine.Requests()-requests)/float64(stored))
				assert.LessOrEqual(t, mean, 12.5)
				var cold saveCost
				const nodes = 20
				for range nodes {
					cost := r.costOfSave(r.node(opts, false), actor)
					cold.requests, cold.units = cold.requests+cost.requests, cold.units+cost.units
					for range 11 { // makes the next cold Save find a tail of another length
						r.costOfSave(node, actor)
					}
				}
				t.Logf("a cold Save costs %.1f RU and %.1f requests in the mean", cold.units/nodes, float64(cold.requests)/nodes)
				assert.LessOrEqual(t, cold.units/nodes, 3*mean)
				assert.LessOrEqual(t, cold.requests, int64(6*nodes), "head and gate, drawers ahead, filter, pages, head")
			})
		})
	}
}

// Each attempt of a Save queries for the missing drawer, but does not read the filters of all drawers
// again.
func TestASaveUnderADamagedOrdinal_CostsAFewRequestsForEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		actor := repositorytest.NewActor()
		opts := Options{DrawerCapacity: 4, SweepEvery: -1, Exclusive: true}
		node := r.node(opts, true)
		events := repositorytest.Events(10, actor)
		for i := range events {
			_, err := node.Save(t.Context(), actor, events[i:i+1])
			require.NoError(t, err)
		}
		node.AwaitHints(t.Context(), actor)
		damage := client.NewPatch(headDocument)
		damage.AppendSet("/cabinets/"+nameOf(events[0].Cabinet())+"/ordinal", 1000)
		require.NoError(t, node.beginCall("test").Patch(t.Context(), node.db.catalog, headKey(actor), headID, damage, &head{}))
		requests := r.engine.Requests()
		_, err := r.node(opts, false).Save(t.Context(), actor, repositorytest.Events(1, actor))
		require.Error(t, err)
		const attempts = 25
		require.LessOrEqual(t, r.engine.Requests()-requests, int64(4*attempts), "head, gate, drawers ahead of the head, drawers")
	})
}
