package domain_test

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

// A modelOrder says whether the cursor in the test model is ordered.
type modelOrder int

const (
	unordered modelOrder = iota
	ordered
	changing // the order may change at each load
)

func (m *cursorModel) isOrdered() bool {
	return m.order == ordered || m.order == changing && rapid.Bool().Draw(m.t, "ordered")
}

// checkOrder requires that an ordered cursor calls deliveries in the order of the stream: in the
// version that the node has loaded, no earlier delivery may still wait.
func (m *cursorModel) checkOrder(n *modelNode, call *domain.Call) {
	if !n.ordered {
		return
	}
	require.Zero(m.t, n.cursor.InFlight(), "P16: one call of an ordered cursor is under way, or not stored")
	v := &m.versions[n.version]
	// Only a stored bundle counts. If a bundle is not stored, the next owner would call its
	// deliveries.
	isInBundle := func(e domain.EntryID) bool { // bundles are not ordered, because a consumer may fetch them at any time
		_, isBundled := m.firstBundled[e]
		return isBundled || v.standing.Held.Has(e)
	}
	if m.order == ordered { // two nodes may have made calls for entries of different priorities
		isBeside := func(e domain.EntryID) bool {
			return e != call.EntryID && e.Priority == call.Priority && !isInBundle(e)
		}
		for e, r := range v.retries {
			require.False(m.t, isBeside(e) && r.Replay == call.Replay, "P16: %v is called, and %v has not ended", call.EntryID, e)
		}
		for _, p := range v.standing.Open {
			require.False(m.t, isBeside(p.EntryID) && call.Replay == 0, "P16: %v is called, and %v has not ended", call.EntryID, p.EntryID)
		}
	}
	if isCalledAgain := call.Attempts > 0 || call.Replay > 0 || v.standing.Claim != nil && v.standing.Claim.Entry == call.EntryID; isCalledAgain {
		return
	}
	for e, r := range v.retries {
		require.True(m.t, r.Replay > 0 || isInBundle(e), "P16: %v is called for the first time, and %v waits for its next attempt", call.EntryID, e)
	}
	for _, e := range m.stream {
		if _, isRetry := v.retries[e]; isRetry || isInBundle(e) || !passesFilter(e) {
			continue
		}
		if e.Priority == call.Priority && e.Number < call.Number {
			require.True(m.t, v.hasEnded(e), "P16: %v is called, and %v before it has not ended", call.EntryID, e)
		}
	}
}
