package domain_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

func heldTaken(s *domain.Standing) []domain.Position {
	if s.Held == nil {
		return nil
	}
	return s.Held.Taken
}

// requestBundle requests a bundle, or requests to dequeue one. It uses the waiting deliveries or
// the bundle of any stored version, which may be outdated.
func (m *cursorModel) requestBundle() {
	if len(m.requests) >= 10 {
		return
	}
	last := len(m.versions) - 1
	i := max(last-rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(m.t, "age of the standing"), 0)
	v := m.versions[i]
	if b := v.standing.Held; b != nil && rapid.Bool().Draw(m.t, "dequeue") {
		m.addRequest(domain.ReplayRequest{Dequeue: b.ID})
		return
	}
	peek := &domain.PeekRequest{Limit: rapid.IntRange(1, 4).Draw(m.t, "limit of the bundle")}
	// A consumer reads the retries after the standing, so it may see one delivery both open and as
	// a retry.
	later := m.versions[rapid.IntRange(i, last).Draw(m.t, "version of the retries")]
	for _, e := range slices.SortedFunc(maps.Keys(later.retries), domain.CompareEntries) {
		peek.Entries = append(peek.Entries, domain.Position{EntryID: e})
	}
	peek.Entries = append(peek.Entries, v.standing.Open...)
	for p := range domain.Priorities {
		for at := v.standing.Position(p); slices.Contains(m.stream, at.EntryID) && passesFilter(at.EntryID); at = at.Next() {
			peek.Entries = append(peek.Entries, at)
		}
	}
	m.addRequest(domain.ReplayRequest{Peek: peek})
}

func (m *cursorModel) addRequest(r domain.ReplayRequest) {
	r.Number = len(m.requests) + 1
	r.ID = fmt.Sprint("request-", r.Number)
	m.requests = append(m.requests, r)
}

// dequeueBundle requests to dequeue the stored bundle, unless such a request is already stored.
func (m *cursorModel) dequeueBundle() {
	b := m.currentVersion().standing.Held
	if b != nil && !slices.ContainsFunc(m.requests, func(r domain.ReplayRequest) bool { return r.Dequeue == b.ID }) {
		m.addRequest(domain.ReplayRequest{Dequeue: b.ID})
	}
}

// checkBundle checks the rules for the bundle in the version that a node has just stored.
func (m *cursorModel) checkBundle(n *modelNode, before *version) {
	v := m.currentVersion()
	old, held := before.standing.Held, v.standing.Held
	if old != nil {
		if held != nil && held.ID == old.ID {
			require.Equal(m.t, old, held, "a bundle does not change")
		} else {
			require.True(m.t, v.standing.HasDequeued(old.ID), "a bundle remains until it is dequeued")
			m.dequeued += old.Len()
		}
	}
	for e := range m.firstBundled {
		if !held.Has(e) && m.isReplayed(before, v, e) {
			delete(m.firstBundled, e)
		}
	}
	if held == nil || old != nil && old.ID == held.ID {
		return
	}
	require.LessOrEqual(m.t, held.Len(), 4)
	once := make(map[domain.EntryID]bool)
	for _, p := range held.Positions() {
		require.False(m.t, once[p.EntryID], "%v is in the bundle twice", p.EntryID)
		once[p.EntryID] = true
		require.True(m.t, passesFilter(p.EntryID))
		require.False(m.t, before.hasEnded(p.EntryID) && !m.isReplayed(before, v, p.EntryID), "P3: %v has ended", p.EntryID)
		for _, call := range n.calls {
			require.NotEqual(m.t, p.EntryID, call.EntryID, "P15: a delivery that is being called is in no bundle")
		}
		m.firstBundled[p.EntryID] = len(m.versions) - 1
	}
	for _, p := range held.Retries {
		require.Contains(m.t, v.retries, p.EntryID)
	}
}
