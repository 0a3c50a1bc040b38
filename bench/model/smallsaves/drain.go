package smallsaves

import (
	"slices"
	"strconv"
)

// maxDrainSteps limits the steps of a drain. A longer drain is reported as endless.
const maxDrainSteps = 300

// drainAlone lets a new actor peek and dequeue alone, without stale reads and faults, until a Peek
// finds nothing. It returns the trace and the violated rule, or "" if the actor received exactly
// the committed events. It ends early if the model has no room for another bundle.
func (m *model) drainAlone(documents *modelState) (message string, trace []string) {
	alone := *m
	alone.Versions, alone.Lenient, alone.steps = 0, false, nil
	var operations []uint8
	for range 20 {
		operations = append(operations, peekOperation, dequeueOperation)
	}
	s := *documents
	s.actors[0] = actor{working: true}
	for range maxDrainSteps {
		if s.bundlesMade >= maxBundles-1 && s.actors[0].step == openBundle {
			m.cutDrains++
			return "", nil
		}
		alone.steps = alone.steps[:0]
		if v := alone.stepActor(&s, 0, operations, true); v != nil {
			return v.message, append(trace, v.label)
		}
		if len(alone.steps) == 0 {
			return "H1: a drain is stuck", trace
		}
		next := &alone.steps[0]
		trace = append(trace, next.label)
		s = next.state
		if next.outcome == noData {
			for c := range cabinets {
				if s.history.acked[c] != s.history.logged[c] {
					return "H1: a drain missed committed events of cabinet " + strconv.Itoa(c), trace
				}
			}
			return "", nil
		}
	}
	if s.bundlesMade >= maxBundles-1 {
		m.cutDrains++
		return "", nil
	}
	return "H1: a drain does not end", trace
}

// saveAgain lets a new writer save every event again, alone, and then drains again.
func (m *model) saveAgain(documents *modelState) (message string, trace []string) {
	alone := *m
	alone.Versions, alone.NoLateFlush, alone.steps = 0, false, nil
	alone.without &= ofVariants
	alone.jobs = [processes][]job{m.everyEvent()}
	if len(alone.jobs[0]) == 0 {
		return "", nil
	}
	s := *documents
	s.rollbacks = 9
	s.writers[0] = writerProcess{working: true, incarnation: 99}
	for range maxDrainSteps {
		if s.drawersMade >= maxDrawers-1 {
			m.cutDrains++
			return "", nil
		}
		alone.steps = alone.steps[:0]
		if v := alone.stepWriter(&s, 0); v != nil {
			return v.message, append(trace, v.label)
		}
		if len(alone.steps) == 0 {
			break
		}
		trace = append(trace, alone.steps[0].label)
		s = alone.steps[0].state
		if message := m.checkDocuments(&s); message != "" {
			return message, trace
		}
	}
	if int(s.writers[0].job) < len(alone.jobs[0]) {
		return "H1: a fresh writer is stuck", trace
	}
	s.writers = [processes]writerProcess{}
	message, more := m.drainAlone(&s)
	return message, append(trace, more...)
}

// everyEvent returns a batch for each event of the scenario.
func (m *model) everyEvent() (jobs []job) {
	var events []uint8
	for _, all := range m.jobs {
		for _, j := range all {
			events = append(events, j.events...)
		}
	}
	slices.Sort(events)
	for _, e := range slices.Compact(events) {
		jobs = append(jobs, job{events: []uint8{e}})
	}
	return jobs
}
