package simulate

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/messagehub/messagehub/bench/simulate/history"
	"github.com/messagehub/messagehub/domain"
)

// A mailboxHistories records the requests and results of each recipient's clients. Package history checks whether a
// sequential hub could have produced these results. Histories do not model operators, so simulations with operators are
// not checked.
type mailboxHistories struct {
	sim               *simulation
	ticks             atomic.Int64
	recorders         map[string]*history.Recorder // by recipient
	inconclusivePeeks map[string]*atomic.Int64     // number of inconclusive Peeks, by recipient
	byBus             atomic.Bool                  // true if events were sent over the bus, so that it is unknown when the events were stored
}

// maxHistory is the maximum number of operations in a checked history. The search is too expensive for longer histories.
const maxHistory = 60

func newMailboxHistories(sim *simulation) *mailboxHistories {
	m := &mailboxHistories{sim: sim, recorders: make(map[string]*history.Recorder), inconclusivePeeks: make(map[string]*atomic.Int64)}
	for i := range sim.plan.recipients {
		m.recorders[actorName(i)], m.inconclusivePeeks[actorName(i)] = new(history.Recorder), new(atomic.Int64)
	}
	return m
}

// nextTick returns a time that is later than all times that it has returned.
func (m *mailboxHistories) nextTick() int64 { return m.ticks.Add(1) }

// noteSent records that a client sent a batch of events. began is the time at which the request began.
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

// notePeek records a Peek of a recipient and the returned bundle.
func (m *mailboxHistories) notePeek(client int, began int64, recipient, group string, came history.Outcome, b history.Bundle) {
	if came == history.None && m.sim.plan.consistency == "Session" {
		m.inconclusivePeeks[recipient].Add(1) // the Peek may have opened a bundle that a different client dequeued before the Peek returned
	}
	var groups []string
	if group != "" {
		groups = []string{group}
	}
	m.recorders[recipient].Peek(client, began, groups...)(m.nextTick(), came, b)
}

// noteDequeue records a Dequeue of a recipient and its outcome.
func (m *mailboxHistories) noteDequeue(client int, began int64, recipient, bundle string, came history.Outcome) {
	m.recorders[recipient].Dequeue(client, began, bundle)(m.nextTick(), came)
}

// checkHistories returns the number of checked histories, and an error if no sequential hub could have produced one of
// them.
func (m *mailboxHistories) checkHistories() (n int, err error) {
	if m.sim.plan.sendsConflicts || m.sim.plan.hasOperators || m.byBus.Load() {
		return 0, nil // an id with two contents is ambiguous in a history
	}
	for _, recipient := range slices.Sorted(maps.Keys(m.recorders)) {
		h := m.recorders[recipient].History()
		if n := h.Len() - int(m.inconclusivePeeks[recipient].Load()); n == 0 || n > maxHistory {
			continue
		}
		// In a bubble, many steps may have the same time, so the times do not determine which bundle was opened first.
		r := h.Check(history.Options{StaleReads: m.sim.plan.consistency == "Session", AnyOpen: true})
		if r.Verdict != history.Legal {
			return n, fmt.Errorf("the history of %s cannot be explained by a sequential hub (%s): %s\n%s", recipient, r.Verdict, &r, h)
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
	g, err := domain.DefaultGroups().GroupOf(o)
	if err != nil {
		return ""
	}
	return g.String()
}
