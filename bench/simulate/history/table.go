package history

import "slices"

// A table has numbers in place of names, so that a step compares no texts.
type table struct {
	contents [][]Event      // of each id of an event, all that were ever sent
	events   map[string]int // the number of an id
	bundles  []shownBundle  // all that were ever shown
	ids      map[string]int // the number of an id of a bundle
	peeks    []*step
	stored   []int64         // for each id of an event, when it was surely there: the end of the first Send that says so
	fates    []shownPosition // of each id of an event
}

// A shownBundle is a bundle as Peeks have shown it. One that is shown differently
// another time is another one, with the same id.
type shownBundle struct {
	*Bundle
	id     int   // the number of its id
	events []int // -1: was never sent
	behind []int // events that are there before its first
}

// A shownPosition is where an event is shown.
type shownPosition struct {
	bundles int // so many
	bundle  int // the last of them
	place   int // in it
}

// A step is an operation in numbers.
type step struct {
	*operation
	sent   []sentNumbers
	bundle int // of the table: shown by a Peek
	id     int // of a Dequeue; -1: was never shown
}

type sentNumbers struct {
	id      int
	content int // from 1
}

// tableOf returns the table of a history, and its steps.
func tableOf(operations []*operation) (*table, []*step) {
	t := &table{events: make(map[string]int), ids: make(map[string]int)}
	steps := make([]*step, len(operations))
	for i, op := range operations {
		steps[i] = &step{operation: op, bundle: -1, id: -1}
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
		if op.outcome == Shown {
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

func (t *table) sendNumbers(e Event) sentNumbers {
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

func (t *table) bundleNumber(b Bundle) int {
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

// eventOf returns the content with which an id that was seen counts.
func (t *table) eventOf(m *mailbox, id int) *Event { return &t.contents[id][m.seen[id]-1] }

// emptyMailbox returns the mailbox before the first step.
func (t *table) emptyMailbox() *mailbox {
	return (&mailbox{seen: make([]int, len(t.contents)), used: make([]byte, len(t.ids))}).withChange(func(*mailbox) {})
}
