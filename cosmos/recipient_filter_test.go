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

// eventsOfKinds returns events with different content types. kinds is the number of events.
func eventsOfKinds(actor domain.ActorID, kinds int) []domain.Event {
	events := make([]domain.Event, kinds)
	for i := range events {
		events[i] = repositorytest.Event(actor, repositorytest.WithContentType(fmt.Sprint("kind-", i)))
	}
	return events
}

// A Save to a recipient with many cabinets, through a node that does not know the recipient, costs at
// most three times as much as through a node that knows it.
func TestAColdSaveOfManyKinds_CostsUpToThreeTimesAWarmOne(t *testing.T) {
	for _, tc := range []struct{ kinds, batches, tails int }{
		{4, 150, 24}, {10, 20, 24}, {10, 20, 0}, {40, 10, 24}, {100, 5, 24}, {100, 5, 0}, {999, 1, 24}, {999, 3, 0}, {999, 8, 24},
	} {
		if tc.kinds*tc.batches > 1000 && !triesEveryCase || testing.Short() && tc.kinds > 100 {
			continue
		}
		inBubble(t, fmt.Sprintf("%d kinds, %d in each, %d in a tail", tc.kinds, tc.batches, tc.tails), func(t *testing.T) {
			r := newRig(t, embedded.Options{Pessimistic: true})
			actor := repositorytest.NewActor()
			opts := Options{TailEvents: tc.tails, SweepEvery: -1}
			node := r.node(opts, true)
			for range tc.batches {
				_, err := node.Save(t.Context(), actor, eventsOfKinds(actor, tc.kinds))
				require.NoError(t, err)
				node.AwaitHints(t.Context(), actor)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			save := func(by *Repository) saveCost {
				requests, units := r.engine.Requests(), r.engine.RequestUnits()
				_, err := by.Save(context.Background(), actor, eventsOfKinds(actor, tc.kinds)[rng.IntN(tc.kinds):][:1])
				require.NoError(t, err)
				by.AwaitHints(context.Background(), actor)
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

// A node that has read the filter of a recipient also finds events that the filter does not cover: events
// in pages that were written after the filter, and events that another node saves later.
func TestTheFilterOfARecipient_IsCompletedFromThePages(t *testing.T) {
	const kinds = 9
	for _, tails := range []int{0, 2, 24} {
		t.Run(fmt.Sprintf("%d in a tail", tails), func(t *testing.T) {
			s := newTrust(t)
			opts := Options{TailEvents: tails, SweepEvery: -1}
			first := s.node(opts, true)
			var all []domain.Event
			save := func(by *Repository, n int) {
				events := eventsOfKinds(s.actor, kinds)[:n]
				all = append(all, events...)
				s.save(by, 0, events)
				by.AwaitHints(t.Context(), s.actor)
			}
			for range 30 {
				save(first, kinds)
			}
			drawers, _, _, err := first.beginCall("test").readRecipientFilter(t.Context(), s.actor)
			require.NoError(t, err)
			require.NotEmpty(t, drawers)
			second := s.node(opts, true)
			save(second, 1)
			silent := s.node(opts, false) // this node writes no hints, so it writes no filter
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
			require.NoError(t, s.repairMailbox(s.actor))
		})
	}
}

// storeFilter saves events through a node until the filter of the recipient is stored.
func storeFilter(t *testing.T, s *trust, node *Repository, kinds int) (events []domain.Event) {
	t.Helper()
	for range 30 {
		some := eventsOfKinds(s.actor, kinds)
		events = append(events, some...)
		s.save(node, 0, some)
		node.AwaitHints(t.Context(), s.actor)
	}
	drawers, _, _, err := node.beginCall("test").readRecipientFilter(t.Context(), s.actor)
	require.NoError(t, err)
	require.Greater(t, len(drawers), defaultUnfiltered)
	return events
}

// replaceFilter replaces the encoded drawers in the filter of a recipient with the result of change.
func replaceFilter(t *testing.T, node *Repository, actor domain.ActorID, change func([]filteredDrawer) []byte) {
	t.Helper()
	c := node.beginCall("test")
	drawers, etag, document, err := c.readRecipientFilter(t.Context(), actor)
	require.NoError(t, err)
	doc := &recipientFilterDoc{ID: recipientFilterID, PartitionKey: headKey(actor), Fingerprints: change(drawers), Document: document}
	_, err = c.Put(t.Context(), node.db.catalog, doc.PartitionKey, recipientFilterID, etag, doc)
	require.NoError(t, err)
}

func TestAFilterOfARecipient_ThatIsWrongIsFoundAndRepaired(t *testing.T) {
	for name, change := range map[string]func([]filteredDrawer) []byte{
		"it lacks an event": func(drawers []filteredDrawer) []byte {
			drawers[1].keys = drawers[1].keys[1:]
			return encodeDrawers(drawers)
		},
		"it is damaged": func(drawers []filteredDrawer) []byte { return encodeDrawers(drawers)[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTrust(t)
			node := s.node(Options{SweepEvery: -1}, true)
			all := storeFilter(t, s, node, 9)
			require.NoError(t, s.auditMailbox(s.actor))
			replaceFilter(t, node, s.actor, change)
			report, err := s.checkMailbox(s.actor, true)
			require.NoError(t, err)
			require.Len(t, report.Findings, 1)
			require.Equal(t, filterWrong, report.Findings[0].Kind)
			require.Equal(t, 1, int(report.Repaired))
			saved, err := s.node(Options{}, false).Save(t.Context(), s.actor, all)
			require.NoError(t, err)
			require.Equal(t, repository.Saved{Duplicates: len(all)}, saved)
		})
	}
}

// If the filter of a recipient cannot be decoded, the next node that needs it replaces it.
func TestAFilterOfARecipient_ThatIsDamagedIsReplaced(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{SweepEvery: -1}, true)
	all := storeFilter(t, s, node, 9)
	replaceFilter(t, node, s.actor, func([]filteredDrawer) []byte { return []byte("none") })
	other := s.node(Options{SweepEvery: -1}, true)
	s.save(other, 0, eventsOfKinds(s.actor, 1))
	other.AwaitHints(t.Context(), s.actor)
	drawers, _, _, err := node.beginCall("test").readRecipientFilter(t.Context(), s.actor)
	require.NoError(t, err)
	require.Len(t, drawers, 9)
	saved, err := s.node(Options{}, false).Save(t.Context(), s.actor, all)
	require.NoError(t, err)
	require.Equal(t, repository.Saved{Duplicates: len(all)}, saved)
}

// A filter that covers more slots than the head was based on a newer head that the store has lost.
// Because different events will fill these slots, the filter must not be used.
func TestAFilterOfARecipient_ThatIsAheadOfItsHeadIsNotUsed(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{SweepEvery: -1}, true)
	all := storeFilter(t, s, node, 9)
	replaceFilter(t, node, s.actor, func(drawers []filteredDrawer) []byte {
		for i := range drawers {
			drawers[i].count += 25
		}
		return encodeDrawers(drawers)
	})
	silent := s.node(Options{SweepEvery: -1}, false)
	more := eventsOfKinds(s.actor, 9)
	s.save(silent, 0, more)
	for _, by := range []*Repository{s.node(Options{SweepEvery: -1}, false), s.node(Options{SweepEvery: -1}, true)} {
		s.save(by, 0, eventsOfKinds(s.actor, 1))
		by.AwaitHints(t.Context(), s.actor)
		saved, err := by.Save(t.Context(), s.actor, append(more, all...))
		require.NoError(t, err)
		require.Equal(t, repository.Saved{Duplicates: len(all) + len(more)}, saved)
	}
	h, err := node.beginCall("test").readHead(t.Context(), s.actor)
	require.NoError(t, err)
	drawers, _, _, err := node.beginCall("test").readRecipientFilter(t.Context(), s.actor)
	require.NoError(t, err)
	pages := make(map[string]int)
	for _, last := range h.Cabinets {
		pages[last.Drawer] = last.inPages()
	}
	for _, d := range drawers {
		require.LessOrEqual(t, d.count, pages[d.drawer], "it is replaced")
	}
}

// The filter of a recipient covers small drawers. When a drawer becomes too large, the filter still
// covers only the first events of the drawer.
func TestADrawerTooLargeForTheRecipientFilter_HasItsOwnFilter(t *testing.T) {
	const kinds = 9
	r := newRig(t, embedded.Options{Pessimistic: true})
	actor := repositorytest.NewActor()
	opts := Options{TailEvents: 24, SweepEvery: -1}
	node := r.node(opts, true)
	for range 120 {
		var events []domain.Event
		for range 24 {
			events = append(events, eventsOfKinds(actor, kinds)...)
		}
		_, err := node.Save(t.Context(), actor, events)
		require.NoError(t, err)
		node.AwaitHints(t.Context(), actor)
	}
	drawers, _, _, err := node.beginCall("test").readRecipientFilter(t.Context(), actor)
	require.NoError(t, err)
	require.NotEmpty(t, drawers)
	cost := r.costOfSave(r.node(opts, false), actor)
	t.Logf("%d requests, %.1f RU", cost.requests, cost.units)
	require.LessOrEqual(t, cost.units, 20.0*kinds, "a filter and a few pages of each, rather than 100 pages")
}
