package simulate

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/messagehub/messagehub/bench/simulate/history"
	"github.com/messagehub/messagehub/domain"
)

// A mailboxHistories records what the clients of each recipient saw, for package history to explain. Histories do not
// model operators, so simulations with operators have none.
type mailboxHistories struct {
	sim       *simulation
	ticks     atomic.Int64
	recorders map[string]*history.Recorder // by recipient
	muteReads map[string]*atomic.Int64     // by recipient: Peeks that prove nothing
	byBus     atomic.Bool                  // events were sent by the bus, so clients do not learn when they are stored
}

// maxHistory is the limit for the operations of a history that is checked, because the search is expensive.
const maxHistory = 60

func newMailboxHistories(sim *simulation) *mailboxHistories {
	m := &mailboxHistories{sim: sim, recorders: make(map[string]*history.Recorder), muteReads: make(map[string]*atomic.Int64)}
	for i := range sim.plan.recipients {
		m.recorders[actorName(i)], m.muteReads[actorName(i)] = new(history.Recorder), new(atomic.Int64)
	}
	return m
}

// nextTick returns a time after all earlier ones.
func (m *mailboxHistories) nextTick() int64 { return m.ticks.Add(1) }

// noteSent notes events that were sent at began, and the outcome.
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

// notePeek notes a Peek of a recipient and the bundle that it returned.
func (m *mailboxHistories) notePeek(client int, began int64, recipient, group string, came history.Outcome, b history.Bundle) {
	if came == history.None && m.sim.plan.consistency == "Session" {
		m.muteReads[recipient].Add(1) // it may have opened a bundle that another client dequeued before it was returned
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

// checkHistories returns the number of checked histories, and an error if one of them has no explanation.
func (m *mailboxHistories) checkHistories() (n int, err error) {
	if m.sim.plan.sendsConflicts || m.sim.plan.hasOperators || m.byBus.Load() {
		return 0, nil // an id with two contents is ambiguous in a history
	}
	for _, recipient := range slices.Sorted(maps.Keys(m.recorders)) {
		h := m.recorders[recipient].History()
		if n := h.Len() - int(m.muteReads[recipient].Load()); n == 0 || n > maxHistory {
			continue
		}
		// In a bubble the time may be the same for many steps, so it does not show which bundle was opened first.
		r := h.Check(history.Options{StaleReads: m.sim.plan.consistency == "Session", AnyOpen: true})
		if r.Verdict != history.Legal {
			return n, fmt.Errorf("the history of %s has no explanation (%s): %s\n%s", recipient, r.Verdict, &r, h)
		}
		n++
	}
	return n, nil
}

// groupOf returns the default group of an origin.
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
