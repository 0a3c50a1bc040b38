package cosmos

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// drawerFilter returns the stored filter of the first drawer of the main cabinet, or nil if no filter
// exists.
func (f *failover) drawerFilter() *blockFilterDoc {
	f.Helper()
	node, doc := f.node(f.opts, false), new(blockFilterDoc)
	_, err := node.beginCall("test").Read(f.Context(), node.db.cabinets, cabinetKey(f.main), drawerSegment(1).documentID(), doc)
	if client.IsNotFound(err) {
		return nil
	}
	require.NoError(f, err)
	return doc
}

// fillTail saves single events until the filter of their drawer is stored and their tail is full. It
// returns the partition of the head after the last flush.
func (f *failover) fillTail(node *Repository) (flushed partition) {
	f.Helper()
	for f.drawerFilter() == nil || f.tailLen() < f.opts.TailEvents {
		f.saveEvents(node, repositorytest.Events(1, f.actor), 1)
		node.AwaitHints(f.Context(), f.actor)
		if f.tailLen() == 1 {
			flushed = f.listPartitions(1)[0]
		}
		if stored := f.drawerFilter(); stored != nil {
			require.LessOrEqual(f, stored.Count, f.readHead().Cabinets[nameOf(f.main)].inPages())
		}
	}
	return flushed
}

// A failover may lose the tail in a head but not the filter of the drawer. Other events then fill the
// slots of the tail, and the filter must not claim to cover these slots.
func TestTheFilterOfADrawer_CoversNoSlotOfATail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{Consistency: "Strong"}, Options{Exclusive: true, SweepEvery: -1, TailEvents: 24})
		f.restorePartition(f.fillTail(f.node(f.opts, true)))
		again := repositorytest.Events(30, f.actor)
		f.saveEvents(f.node(f.opts, false), again, 1)
		saved, err := f.node(f.opts, false).Save(t.Context(), f.actor, again)
		require.NoError(t, err)
		require.Equal(t, repository.Saved{Duplicates: len(again)}, saved)
	})
}

// An older version may have stored a filter that covers slots of a tail.
func TestAFilterOfAnOlderVersion_IsUsedForPagesAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{Consistency: "Strong"}, Options{Exclusive: true, SweepEvery: -1, TailEvents: 24})
		node := f.node(f.opts, true)
		f.fillTail(node)
		last := f.readHead().Cabinets[nameOf(f.main)]
		events, _, err := node.beginCall("test").readIDs(t.Context(), f.main, slotRange{Drawer: last.Drawer, Ordinal: 1, To: last.inPages()}, nil)
		require.NoError(t, err)
		tail, err := last.decodeTail(f.main)
		require.NoError(t, err)
		for _, e := range tail.events[:20] {
			events[e.ID] = e.digest
		}
		doc := f.drawerFilter()
		doc.Count, doc.Fingerprints = len(events), newFingerprintSet(drawerSegment(1), keysOf(events)).encode()
		_, err = node.beginCall("test").Put(t.Context(), node.db.cabinets, doc.PartitionKey, doc.ID, doc.ETag, doc)
		require.NoError(t, err)

		calls := f.line.Calls()
		other := f.node(f.opts, true)
		f.saveEvents(other, repositorytest.Events(1, f.actor), 1)
		require.LessOrEqual(t, f.line.Calls()-calls, 8, "head, gate, drawers ahead, filter, flush, and head; the pages are not read")
		other.AwaitHints(t.Context(), f.actor)
		stored := f.drawerFilter()
		require.LessOrEqual(t, stored.Count, f.readHead().Cabinets[nameOf(f.main)].inPages(), "it is replaced")
		require.NoError(t, f.auditMailbox(f.actor))
	})
}
