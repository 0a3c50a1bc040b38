package history

import "slices"

// A nameTable assigns numbers to names, so that steps compare numbers and not texts.
type nameTable struct {
	contents [][]Event      // for each event id, all contents that were sent
	events   map[string]int // number of each event id
	bundles  []shownBundle  // all bundles that Peeks returned
	ids      map[string]int // number of each bundle id
	peeks    []*modelStep
	stored   []int64         // for each event id, the end of the first Send that reports the event as stored
	fates    []shownPosition // for each event id, the position of the event in a bundle
}

// A shownBundle is a bundle that Peeks returned. If Peeks returned different bundles with the same id, there is a
// shownBundle for each of them.
type shownBundle struct {
	*Bundle
	id     int   // number of the bundle id
	events []int // numbers of the events; -1 stands for an event that was never sent
	behind []int // events that are stored before the first event
}

// A shownPosition is the position of an event in the bundle that contains the event.
type shownPosition struct {
	bundles int // number of bundles that contain the event
	bundle  int // number of the last bundle that contains the event
	place   int // position of the event in that last bundle
}

// A modelStep is an operation with numbers in place of names.
type modelStep struct {
	*mailboxOperation
	sent   []sentNumbers
	bundle int // number of the bundle that a Peek returned
	id     int // number of the id that a Dequeue confirms; -1 if no Peek returned the id
}

type sentNumbers struct {
	id      int
	content int // number of the content of the event, from 1
}

// tableOf returns the table of a history, and its steps.
func tableOf(operations []*mailboxOperation) (*nameTable, []*modelStep) {
	t := &nameTable{events: make(map[string]int), ids: make(map[string]int)}
	steps := make([]*modelStep, len(operations))
	for i, op := range operations {
		steps[i] = &modelStep{mailboxOperation: op, bundle: -1, id: -1}
		for _, e := range op.events {
			steps[i].sent = append(steps[i].sent, t.sendNumbers(e))
		}
		if op.kind == peek {
			t.peeks = append(t.peeks, steps[i])
		}
		for _, e := range steps[i].sent {
			if op.outcome == Accepted {
				t.stored[e.id] = min(t.stored[e.id], op.done)
			}
		}
	}
	for i, op := range operations {
		if op.outcome == Returned {
			steps[i].bundle = t.bundleNumber(op.bundle)
		}
	}
	t.fates = make([]shownPosition, len(t.contents))
	for i, b := range t.bundles {
		for place, id := range b.events {
			if id >= 0 {
				t.fates[id] = shownPosition{t.fates[id].bundles + 1, i, place}
			}
		}
	}
	t.noteOrder(steps)
	for i, op := range operations {
		if id, ok := t.ids[op.id]; ok && op.kind == dequeue {
			steps[i].id = id
		}
	}
	return t, steps
}

func (t *nameTable) sendNumbers(e Event) sentNumbers {
	id, ok := t.events[e.ID]
	if !ok {
		id = len(t.contents)
		t.events[e.ID] = id
		t.contents, t.stored = append(t.contents, nil), append(t.stored, forever)
	}
	content := slices.Index(t.contents[id], e)
	if content < 0 {
		content = len(t.contents[id])
		t.contents[id] = append(t.contents[id], e)
	}
	return sentNumbers{id, content + 1}
}

func (t *nameTable) bundleNumber(b Bundle) int {
	for i := range t.bundles {
		if t.bundles[i].isSame(&b) {
			return i
		}
	}
	id, ok := t.ids[b.ID]
	if !ok {
		id = len(t.ids)
		t.ids[b.ID] = id
	}
	s := shownBundle{Bundle: &b, id: id}
	for _, event := range b.Events {
		number, ok := t.events[event]
		if !ok {
			number = -1
		}
		s.events = append(s.events, number)
	}
	t.bundles = append(t.bundles, s)
	return len(t.bundles) - 1
}

func (s *shownBundle) isSame(b *Bundle) bool {
	return s.ID == b.ID && s.Group == b.Group && s.Cabinet == b.Cabinet && s.Body == b.Body && slices.Equal(s.Events, b.Events)
}

// eventOf returns the content of a stored event.
func (t *nameTable) eventOf(m *mailbox, id int) *Event { return &t.contents[id][m.seen[id]-1] }

// emptyMailbox returns the mailbox before the first step.
func (t *nameTable) emptyMailbox() *mailbox {
	return (&mailbox{seen: make([]int, len(t.contents)), used: make([]byte, len(t.ids))}).withChange(func(*mailbox) {})
}
