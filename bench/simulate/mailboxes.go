package simulate

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/messagehub/messagehub/bench/simulate/history"
	"github.com/messagehub/messagehub/domain"
)

// Mailboxes note what the clients of each recipient saw, for package history to
// explain. What operators do to a mailbox it does not know, so worlds with operators
// have none.
type mailboxes struct {
	w     *world
	ticks atomic.Int64
	of    map[string]*history.Recorder // by recipient
	mute  map[string]*atomic.Int64     // Peeks of a recipient that say nothing
	byBus atomic.Bool                  // events were sent of which nobody outside learns when the hub has them
}

// longest is how many operations that say something a history has that is looked at: the
// search for an explanation takes its time.
const longest = 60

func newMailboxes(w *world) *mailboxes {
	m := &mailboxes{w: w, of: make(map[string]*history.Recorder), mute: make(map[string]*atomic.Int64)}
	for i := range w.plan.recipients {
		m.of[actorName(i)], m.mute[actorName(i)] = new(history.Recorder), new(atomic.Int64)
	}
	return m
}

// now is a moment: it comes after all that have been.
func (m *mailboxes) now() int64 { return m.ticks.Add(1) }

// sent notes events that were sent since began, with what came of it.
func (m *mailboxes) sent(client int, began int64, batch []event, came history.Outcome) {
	of := make(map[string][]history.Event)
	for i := range batch {
		e := &batch[i]
		of[e.Recipient] = append(of[e.Recipient], history.Event{
			ID: e.ID, Cabinet: e.cabinet(), Group: groupOf(e.Origin), Bundleable: e.SupportsBundling, Weight: e.Weight,
		})
	}
	for _, recipient := range slices.Sorted(maps.Keys(of)) {
		m.of[recipient].Send(client, began, of[recipient]...)(m.now(), came)
	}
}

// peeked notes a Peek for a recipient, and the bundle that it was shown.
func (m *mailboxes) peeked(client int, began int64, recipient, group string, came history.Outcome, b history.Bundle) {
	if came == history.None && m.w.plan.consistency == "Session" {
		m.mute[recipient].Add(1) // but it may have opened what another has dequeued before it could show it
	}
	var groups []string
	if group != "" {
		groups = []string{group}
	}
	m.of[recipient].Peek(client, began, groups...)(m.now(), came, b)
}

// dequeued notes a Dequeue of a recipient.
func (m *mailboxes) dequeued(client int, began int64, recipient, bundle string, came history.Outcome) {
	m.of[recipient].Dequeue(client, began, bundle)(m.now(), came)
}

// check returns how many histories there are an explanation for, or that there is none
// for one.
func (m *mailboxes) check() (n int, err error) {
	if m.w.plan.conflicts || m.w.plan.operators || m.byBus.Load() {
		return 0, nil // an id with two contents has two meanings
	}
	for _, recipient := range slices.Sorted(maps.Keys(m.of)) {
		h := m.of[recipient].History()
		if n := h.Len() - int(m.mute[recipient].Load()); n == 0 || n > longest {
			continue
		}
		// Time stands still in a bubble while nobody waits for it, so nobody can tell
		// which bundle was opened first.
		r := h.Check(history.Options{StaleReads: m.w.plan.consistency == "Session", AnyOpen: true})
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
