package history

import (
	"fmt"
	"slices"
)

// narrowSteps returns the steps that a search has to place. An operation without an
// answer may take effect at any time until the end of all, and a search that has to
// try them all is lost soon. But most that cannot be told apart need not be tried:
//
//   - A Peek that says nothing, a Send that stored nothing and a Dequeue of what no
//     Peek has shown change nothing and demand nothing, at any time.
//   - A Dequeue without an answer has changed nothing if another is known to have
//     closed the bundle.
//   - Events that nobody was shown or is known to have stored can only be in the
//     way. If a Send without an answer has no other events, the history is legal with
//     it only if it is legal without it.
//   - A Send without an answer changes nothing any more once all its events are
//     there. So if it took effect later than that, or never, it might as well have
//     taken effect at that time. And if it alone can have brought an event that was
//     shown, it has taken effect by then.
//   - Of Sends of the same without an answer the first can stand for all: what one
//     of the others has stored it might have stored at that time, and it was stored
//     once.
func (t *model) narrowSteps(steps []*step) []*step {
	steps = withoutRepeats(steps)
	surely := slices.Clone(t.stored) // when each event is there at the latest
	senders := make([]int, len(t.contents))
	closed := make(map[int]bool)
	for _, s := range steps {
		for _, e := range s.sent {
			senders[e.id]++
		}
		if s.outcome == Shown {
			for _, id := range t.bundles[s.bundle].events {
				if id >= 0 {
					surely[id] = min(surely[id], s.done)
				}
			}
		}
		if s.outcome == Done {
			closed[s.id] = true
		}
	}
	var narrowed []*step
	for _, s := range steps {
		switch {
		case s.outcome == Rejected:
		case s.kind == peek && (s.outcome == Unknown || s.outcome == None && t.StaleReads):
		case s.kind == dequeue && s.outcome == Unknown && (s.id < 0 || closed[s.id]):
		case s.kind == send && s.outcome == Unknown:
			if until := effectBy(s.sent, surely, senders); until >= s.call {
				within := *s.operation
				within.done = until
				narrowed = append(narrowed, &step{operation: &within, sent: s.sent, bundle: -1, id: -1})
			}
		default:
			narrowed = append(narrowed, s)
		}
	}
	return narrowed
}

// withoutRepeats leaves out the Sends without an answer that another one, which began
// before, can stand for.
func withoutRepeats(steps []*step) []*step {
	first := make(map[string]*step)
	isUnknown := func(s *step) bool { return s.kind == send && s.outcome == Unknown }
	for _, s := range steps {
		if of := fmt.Sprint(s.sent); isUnknown(s) && (first[of] == nil || s.call < first[of].call) {
			first[of] = s
		}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s *step) bool { return isUnknown(s) && first[fmt.Sprint(s.sent)] != s })
}

// effectBy returns by when a Send without an answer has taken effect, if it has any
// that matters; before all times if it has none.
func effectBy(sent []sentNumbers, surely []int64, senders []int) int64 {
	all, alone := int64(never), int64(forever)
	matters := false
	for _, e := range sent {
		all = max(all, surely[e.id])
		if surely[e.id] < forever {
			matters = true
			if senders[e.id] == 1 {
				alone = min(alone, surely[e.id])
			}
		}
	}
	if !matters {
		return never
	}
	return min(all, alone)
}
