package smallsaves

import "strings"

// setUp executes the steps before the start, without faults.
func (m *model) setUp(s *modelState) {
	before := newModel(&m.Scenario)
	before.Versions = 0
	for part := range strings.SplitSeq(m.Setup, "/") {
		if batch, ok := strings.CutPrefix(part, "S"); ok {
			before.jobs = [processes][]job{{parseJob(batch)}}
			s.writers[0] = writerProcess{working: true}
			before.runWriter(s)
			s.writers[0] = writerProcess{}
			continue
		}
		s.actors[0] = actor{working: true, bundle: s.bundlesMade}
		before.runActor(s, parseOperations(strings.TrimPrefix(part, "A")))
		s.actors[0] = actor{}
	}
}

// runWriter lets writer 0 execute its jobs alone.
func (m *model) runWriter(s *modelState) {
	for {
		m.steps = m.steps[:0]
		if v := m.stepWriter(s, 0); v != nil {
			panic("setup: " + v.message)
		}
		if len(m.steps) == 0 {
			return
		}
		*s = m.steps[0].state
	}
}

// runActor lets actor 0 execute operations alone.
func (m *model) runActor(s *modelState, operations []uint8) {
	for {
		m.steps = m.steps[:0]
		if v := m.stepActor(s, 0, operations, true); v != nil {
			panic("setup: " + v.message)
		}
		if len(m.steps) == 0 {
			return
		}
		*s = m.steps[0].state
	}
}
