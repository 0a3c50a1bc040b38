package history

import (
	"fmt"
	"slices"
)

// narrowSteps returns the steps that a search must place. An operation without an answer may take effect at any later
// time, and a search that tries all these times is too slow. narrowSteps removes steps and limits their times:
//
//   - A Peek without a result, a Send that stored nothing and a Dequeue of an id that no
//     Peek returned change no state and depend on no state.
//   - A Dequeue without an answer changed nothing if another Dequeue is known to have
//     closed the bundle.
//   - An event that no Peek returned and that is not certainly stored can only make a history illegal. So a Send without
//     an answer that has only such events is removed.
//   - A Send without an answer changes nothing after all its events are stored. So it may
//     be placed before the time at which all its events are stored, even if it took effect
//     later or never. If no other Send has an event that a Peek returned, this Send took
//     effect before the end of that Peek.
//   - The first of several equal Sends without an answer represents all of them: events are
//     stored once, and the first Send may have stored them at the time of any of the others.
func (t *hubModel) narrowSteps(steps []*modelStep) []*modelStep {
	steps = withoutRepeats(steps)
	surely := slices.Clone(t.stored) // for each event, a time at which it was certainly stored
	senders := make([]int, len(t.contents))
	closed := make(map[int]bool)
	for _, s := range steps {
		for _, e := range s.sent {
			senders[e.id]++
		}
		if s.outcome == Returned {
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
	var narrowed []*modelStep
	for _, s := range steps {
		switch {
		case s.outcome == Rejected:
		case s.kind == peek && (s.outcome == Unknown || s.outcome == None && t.StaleReads):
		case s.kind == dequeue && s.outcome == Unknown && (s.id < 0 || closed[s.id]):
		case s.kind == send && s.outcome == Unknown:
			if until := effectBy(s.sent, surely, senders); until >= s.call {
				within := *s.mailboxOperation
				within.done = until
				narrowed = append(narrowed, &modelStep{mailboxOperation: &within, sent: s.sent, bundle: -1, id: -1})
			}
		default:
			narrowed = append(narrowed, s)
		}
	}
	return narrowed
}

// withoutRepeats removes Sends without an answer that are equal to an earlier Send without an answer.
func withoutRepeats(steps []*modelStep) []*modelStep {
	first := make(map[string]*modelStep)
	isUnknown := func(s *modelStep) bool { return s.kind == send && s.outcome == Unknown }
	for _, s := range steps {
		if of := fmt.Sprint(s.sent); isUnknown(s) && (first[of] == nil || s.call < first[of].call) {
			first[of] = s
		}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s *modelStep) bool { return isUnknown(s) && first[fmt.Sprint(s.sent)] != s })
}

// effectBy returns the time by which a Send without an answer has taken effect. It returns never if the Send has no
// relevant effect.
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
