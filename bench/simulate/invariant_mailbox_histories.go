package simulate

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/messagehub/messagehub/bench/simulate/history"
	"github.com/messagehub/messagehub/domain"
)

// mailboxHistories note what the clients of each recipient saw, for package history to
// explain. What operators do to a mailbox it does not know, so worlds with operators
// have none.
type mailboxHistories struct {
	sim       *simulation
	ticks     atomic.Int64
	recorders map[string]*history.Recorder // by recipient
	muteReads map[string]*atomic.Int64     // Peeks of a recipient that say nothing
	byBus     atomic.Bool                  // events were sent of which nobody outside learns when the hub has them
}

// maxHistory is how many operations that say something a history has that is looked at: the
// search for an explanation takes its time.
const maxHistory = 60

func newMailboxHistories(sim *simulation) *mailboxHistories {
	m := &mailboxHistories{sim: sim, recorders: make(map[string]*history.Recorder), muteReads: make(map[string]*atomic.Int64)}
	for i := range sim.plan.recipients {
		m.recorders[actorName(i)], m.muteReads[actorName(i)] = new(history.Recorder), new(atomic.Int64)
	}
	return m
}

// nextTick is a moment: it comes after all that have been.
func (m *mailboxHistories) nextTick() int64 { return m.ticks.Add(1) }

// noteSent notes events that were sent since began, with what came of it.
func (m *mailboxHistories) noteSent(client int, began int64, batch []sentData, came history.Outcome) {
	of := make(map[string][]history.Event)
	for i := range batch {
		e := &batch[i]
		of[e.Recipient] = append(of[e.Recipient], history.Event{
			ID: e.ID, Cabinet: e.cabinetName(), Group: groupOf(e.Origin), Bundleable: e.SupportsBundling, Weight: e.Weight,
		})
	}
	for _, recipient := range slices.Sorted(maps.Keys(of)) {
		m.recorders[recipient].Send(client, began, of[recipient]...)(m.nextTick(), came)
	}
}

// notePeek notes a Peek for a recipient, and the bundle that it was shown.
func (m *mailboxHistories) notePeek(client int, began int64, recipient, group string, came history.Outcome, b history.Bundle) {
	if came == history.None && m.sim.plan.consistency == "Session" {
		m.muteReads[recipient].Add(1) // but it may have opened what another has dequeued before it could show it
	}
	var groups []string
	if group != "" {
		groups = []string{group}
	}
	m.recorders[recipient].Peek(client, began, groups...)(m.nextTick(), came, b)
}

// noteDequeue notes a Dequeue of a recipient.
func (m *mailboxHistories) noteDequeue(client int, began int64, recipient, bundle string, came history.Outcome) {
	m.recorders[recipient].Dequeue(client, began, bundle)(m.nextTick(), came)
}

// checkHistories returns how many histories there are an explanation for, or that there is none
// for one.
func (m *mailboxHistories) checkHistories() (n int, err error) {
	if m.sim.plan.sendsConflicts || m.sim.plan.hasOperators || m.byBus.Load() {
		return 0, nil // an id with two contents has two meanings
	}
	for _, recipient := range slices.Sorted(maps.Keys(m.recorders)) {
		h := m.recorders[recipient].History()
		if n := h.Len() - int(m.muteReads[recipient].Load()); n == 0 || n > maxHistory {
			continue
		}
		// Time stands still in a bubble while nobody waits for it, so nobody can tell
		// which bundle was opened first.
		r := h.Check(history.Options{StaleReads: m.sim.plan.consistency == "Session", AnyOpen: true})
		if r.Verdict != history.Legal {
			return n, fmt.Errorf("the history of %s has no explanation (%s): %s\n%s", recipient, r.Verdict, &r, h)
		}
		n++
	}
	return n, nil
}

// groupOf is the group of an origin, as the hub has it by default.
func groupOf(origin string) string {
	o, err := domain.ParseOrigin(origin)
	if err != nil {
		return ""
	}
	g, err := domain.DefaultGroups().Of(o)
	if err != nil {
		return ""
	}
	return g.String()
}
