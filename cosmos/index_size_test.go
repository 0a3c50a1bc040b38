package cosmos

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// storeFilters stores the filters of a cabinet with full drawers of random events. It stores only the
// filters that a Save of events with these hashes reads.
func (r *rig) storeFilters(cabinet domain.CabinetKey, drawers int, hashes []uint64) {
	r.t.Helper()
	const perSegment = 5000
	db := r.connect()
	c := New(db, r.content, Options{}).beginCall("test")
	rng := rand.New(rand.NewPCG(1, uint64(drawers)))
	stored := make(map[blockSegment]bool)
	for _, hash := range hashes {
		for _, b := range blocksBetween(1, drawers) {
			at := b.segmentOf(hash)
			if stored[at] {
				continue
			}
			stored[at] = true
			n := perSegment
			if b.level == 0 {
				n = 10_000
			}
			keys := make([]fingerprintKey, n)
			segments := b.segmentCount()
			for i := range keys {
				h := rng.Uint64() / uint64(segments)
				h += uint64(at.segment) * (1 << 63 / uint64(segments) * 2)
				keys[i] = b.keyOf(h, rng.IntN(1<<(fanOutBits*b.level)))
			}
			doc := &blockFilterDoc{ID: at.documentID(), PartitionKey: cabinetKey(cabinet), Until: b.endOrdinal(), Fingerprints: newFingerprintSet(at, keys).encode()}
			if b.level == 0 {
				doc.Drawer, doc.Count, doc.Sealed = fmt.Sprint(b.firstOrdinal()), 10_000, true
			}
			_, err := c.Put(r.t.Context(), c.r.db.cabinets, doc.PartitionKey, doc.ID, "", doc)
			require.NoError(r.t, err)
		}
	}
}

// TestSave_CostsTheSameWithAnyNumberOfDrawers saves to recipients with up to a hundred million events in
// full drawers. The store contains only the documents that a Save reads: the heads and the filters.
func TestSave_CostsTheSameWithAnyNumberOfDrawers(t *testing.T) {
	const saves = 20
	for _, drawers := range []int{0, 1, 10, 100, 1000, 9999} {
		t.Run(fmt.Sprint(drawers), func(t *testing.T) {
			r := newRig(t, embedded.Options{Pessimistic: true})
			actor := repositorytest.NewActor()
			events := repositorytest.Events(3*saves, actor)
			cabinet := events[0].Cabinet()
			r.storeFilters(cabinet, drawers, hashesOf(batchIDs([]*pendingSave{{events: events}})))
			r.storeHead(actor, cabinet, drawers)
			node := r.node(Options{}, true)
			cost := func(node *Repository) (total saveCost) {
				for range saves {
					requests, units := r.engine.Requests(), r.engine.RequestUnits()
					_, err := node.Save(t.Context(), actor, events[:1])
					require.NoError(t, err)
					events = events[1:]
					total.requests += r.engine.Requests() - requests
					total.units += r.engine.RequestUnits() - units
					node.AwaitHints(t.Context(), actor)
				}
				return total
			}
			cost(node)
			warm, cold := cost(node), cost(r.node(Options{IndexBytes: 1}, true))
			t.Logf("mean of %d: warm %.1f RU, %.1f requests; nothing in memory %.1f RU, %.1f requests", saves,
				warm.units/saves, float64(warm.requests)/saves, cold.units/saves, float64(cold.requests)/saves)
			const requests, units = 4, 37 // the cost of a Save that reads nothing
			const falsePositives = 1      // number of filters that wrongly name a drawer
			assert.LessOrEqual(t, warm.requests, int64((requests+1)*saves+falsePositives), "one query more, if the filters do not fit into memory")
			assert.LessOrEqual(t, warm.units, 1.5*units*saves)
			assert.LessOrEqual(t, cold.requests, int64((2*requests+1)*saves))
			assert.LessOrEqual(t, cold.units, 3.0*units*saves)
		})
	}
}

// storeHead stores the head of a recipient whose cabinet has full drawers.
func (r *rig) storeHead(actor domain.ActorID, cabinet domain.CabinetKey, drawers int) {
	r.t.Helper()
	if drawers == 0 {
		return
	}
	total := int64(drawers) * 10_000
	node := New(r.connect(), r.content, Options{})
	h := &head{ID: headID, PartitionKey: headKey(actor), Reserved: domain.Sequence(total), Watermark: domain.Sequence(total), Cabinets: map[cabinetName]cabinetState{
		nameOf(cabinet): {Ordinal: drawers, Sequence: domain.Sequence(total), Total: total},
	}}
	_, err := node.beginCall("test").Put(r.t.Context(), node.db.catalog, h.PartitionKey, headID, "", h)
	require.NoError(r.t, err)
}

// The filters of two recipients do not fit into memory together. A Save costs as much as with one
// recipient, plus the cost of reading the evicted filters again.
func TestTwoLargeRecipients_CostAsMuchAsOne(t *testing.T) {
	const saves, drawers = 30, 400
	r := newRig(t, embedded.Options{Pessimistic: true})
	opts := Options{IndexBytes: 2 << 20}
	cost := func(n int) float64 {
		node := r.node(opts, false)
		var actors []domain.ActorID
		var events [][]domain.Event
		for range n {
			actor := repositorytest.NewActor()
			some := repositorytest.Events(2*saves, actor)
			r.storeFilters(some[0].Cabinet(), drawers, hashesOf(batchIDs([]*pendingSave{{events: some}})))
			r.storeHead(actor, some[0].Cabinet(), drawers)
			actors, events = append(actors, actor), append(events, some)
		}
		var before float64
		for i := range 2 * saves {
			if i == saves {
				before = r.engine.RequestUnits()
			}
			for j, actor := range actors {
				_, err := node.Save(t.Context(), actor, events[j][i:i+1])
				require.NoError(t, err)
			}
			node.writers.mu.Lock()
			assert.LessOrEqual(t, node.writers.bytes, opts.IndexBytes)
			node.writers.mu.Unlock()
		}
		return (r.engine.RequestUnits() - before) / float64(n*saves)
	}
	one, two := cost(1), cost(2)
	t.Logf("a Save costs %.1f RU for one recipient, %.1f for two in turn", one, two)
	assert.LessOrEqual(t, two, 1.1*one)
}

func TestAMergedFilterIsMadeWithAllDrawersOfItsBlock(t *testing.T) {
	r := newRig(t, embedded.Options{})
	node := New(r.connect(), r.content, Options{})
	actor := repositorytest.NewActor()
	event := repositorytest.Event(actor)
	cabinet := event.Cabinet()
	c, b := node.beginCall("test"), block{level: 1}
	var id domain.EventID
	for ordinal := 1; ordinal <= fanOut; ordinal++ {
		merged, err := c.mergeSegment(t.Context(), cabinet, b, 0, 1)
		require.NoError(t, err)
		require.False(t, merged, "drawer %d has no filter yet", ordinal)
		binary.BigEndian.PutUint64(id[:], uint64(ordinal))
		f := &drawerFilter{drawer: fmt.Sprint(ordinal), ordinal: ordinal, count: 1, set: filterOf(ordinal, []uint64{hashOf(id)})}
		known := &storedFilter{}
		require.NoError(t, c.writeDrawerFilter(t.Context(), cabinet, f, known))
		merged, err = c.mergeSegment(t.Context(), cabinet, b, 0, 1)
		require.NoError(t, err)
		require.False(t, merged, "drawer %d is not sealed", ordinal)
		f.sealed = true
		require.NoError(t, c.writeDrawerFilter(t.Context(), cabinet, f, known))
	}
	merged, err := c.mergeSegment(t.Context(), cabinet, b, 0, 1)
	require.NoError(t, err)
	require.True(t, merged)
	for ordinal := 1; ordinal <= fanOut; ordinal++ {
		binary.BigEndian.PutUint64(id[:], uint64(ordinal))
		at := b.segmentOf(hashOf(id))
		found, err := c.readBlockFilters(t.Context(), cabinet, []blockSegment{at})
		require.NoError(t, err)
		require.Equal(t, []int{ordinal}, found[at].set.appendOrdinals(hashOf(id), nil))
	}
	_, err = c.Read(t.Context(), node.db.cabinets, cabinetKey(cabinet), block{level: 2}.segmentOf(0).documentID(), &blockFilterDoc{})
	require.True(t, client.IsNotFound(err))
}
