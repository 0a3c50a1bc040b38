package domain_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

// requestReplay requests to replay one delivery or a range, or to stop the replay of a range.
func (m *cursorModel) requestReplay() {
	if len(m.stream) == 0 || len(m.requests) >= 8 {
		return
	}
	v := m.currentVersion()
	r := domain.ReplayRequest{ID: fmt.Sprint("request-", len(m.requests)+1)}
	switch kind := rapid.IntRange(0, 5).Draw(m.t, "request"); {
	case kind == 0:
		from := rapid.IntRange(0, 3).Draw(m.t, "from")
		r.Range = &domain.ReplayRange{
			From: m.now.Add(time.Duration(from-3) * time.Minute), To: m.now.Add(time.Minute), Rate: 1,
			OnlyDead: rapid.Bool().Draw(m.t, "only dead letters"),
		}
	case kind == 1 && v.standing.Replay != nil:
		r.Stop = v.standing.Replay.ID
	default:
		e := rapid.SampledFrom(m.stream).Draw(m.t, "replayed")
		if !passesFilter(e) {
			return
		}
		r.Delivery = &domain.ReplayDelivery{Position: domain.Position{EntryID: e}, Published: m.now}
	}
	// The new request receives the next number, even if the requester does not know which of the
	// stored requests were executed.
	added, err := m.requests.Add(0, r)
	if err != nil {
		require.Equal(m.t, domain.Conflict, domain.KindOf(err))
		r.Number = len(m.requests) + 1
		added = append(slices.Clone(m.requests), r)
	}
	m.requests = added
}

// followRequests makes a node execute the requests that it has not executed yet.
func (m *cursorModel) followRequests(n *modelNode) {
	for _, r := range m.requests {
		var dead *domain.Retry
		if r.Delivery != nil {
			dead = m.deadAt(n, r.Delivery.EntryID)
		}
		isLetter := r.Delivery != nil && n.cursor.UnstoredLetter(r.Delivery.EntryID) != nil
		triggered := n.cursor.Standing().Counters.Triggered
		if !n.cursor.ApplyReplayRequest(&r, dead, m.now) {
			return
		}
		if isLetter && n.cursor.Standing().Counters.Triggered > triggered {
			n.revived++
		}
	}
}

// deadAt returns an entry's dead letter in the version that a node has loaded, or nil.
func (m *cursorModel) deadAt(n *modelNode, e domain.EntryID) *domain.Retry {
	if dead, ok := m.versions[n.version].dead[e]; ok {
		return &dead
	}
	return nil
}

// replayEntry moves a node's replay past one entry.
func (m *cursorModel) replayEntry(n *modelNode) {
	if !n.cursor.CanReplay(m.now) {
		return
	}
	s := n.cursor.Standing()
	e := s.Replay.At.EntryID
	for !passesFilter(e) {
		n.cursor.SkipReplay(s.Replay.At.Next())
		return
	}
	n.taken = append(n.taken, e)
	isLetter := n.cursor.UnstoredLetter(e) != nil
	n.cursor.TakeReplay(s.Replay.At, m.now, m.deadAt(n, e), m.now)
	if isLetter && n.cursor.Standing().Counters.Triggered > s.Counters.Triggered {
		n.revived++
	}
}

// checkReplays requires that each delivery that a settlement repeats was requested.
func (m *cursorModel) checkReplays(before *version, s *domain.Settlement, taken []domain.EntryID) {
	after := version{standing: s.Standing}
	began := 0
	for p := range domain.Priorities {
		for n := before.standing.Position(p).Number; n < after.standing.Position(p).Number; n++ {
			if passesFilter(domain.EntryID{Priority: p, Number: n}) {
				began++
			}
		}
	}
	again := int(s.Standing.Counters.Triggered-before.standing.Counters.Triggered) - began
	requested := len(taken)
	for _, r := range m.requests {
		if r.Number > before.standing.Followed && r.Number <= s.Standing.Followed && r.Delivery != nil {
			requested++
		}
	}
	require.GreaterOrEqual(m.t, again, 0)
	require.LessOrEqual(m.t, again, requested, "a replay is counted once")
	m.replayed += again
}

// isReplayed reports whether the write that replaced the version before by after may have repeated
// a delivery.
func (m *cursorModel) isReplayed(before, after *version, e domain.EntryID) bool {
	for _, r := range m.requests {
		if r.Number > before.standing.Followed && r.Number <= after.standing.Followed && r.Delivery != nil && r.Delivery.EntryID == e {
			return true
		}
	}
	r := after.standing.Replay
	return r != nil && e.Number < r.End[e.Priority] && r != before.standing.Replay && (before.standing.Replay == nil || *r != *before.standing.Replay)
}
