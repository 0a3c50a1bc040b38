package smallsaves

import "fmt"

// A violation is a step after which a rule does not hold.
type violation struct{ label, message string }

// A transition leads from one state to another.
type transition struct {
	state   modelState
	label   string // empty if the model makes no labels
	outcome stepOutcome
}

// A stepOutcome is the response of a Peek or a Dequeue that ends in a step.
type stepOutcome uint8

const (
	unremarkable stepOutcome = iota
	noData
	acknowledged
)

// A model computes the steps of one scenario.
type model struct {
	Scenario
	jobs       [processes][]job
	operations [processes][]uint8

	labels    bool         // whether steps are labelled
	cut       int          // number of steps that were omitted because a state has no room for their results
	cutDrains int          // number of drains that ended early because a state has no room
	name      string       // name of the process that takes the step
	steps     []transition // steps that lead from the current state to its successors
}

// newModel returns the model of s with its defaults.
func newModel(s *Scenario) *model {
	m := &model{Scenario: *s}
	m.Capacity = orDefault(m.Capacity, 2)
	m.Bundle = orDefault(m.Bundle, 2)
	if m.StaleReads > 0 {
		m.Versions = max(m.Versions, 1)
	}
	if !m.NoRollbacks {
		m.Rollbacks = orDefault(m.Rollbacks, 2)
	}
	for i := range processes {
		m.jobs[i], m.operations[i] = parseJobs(s.Writers[i]), parseOperations(s.Actors[i])
	}
	return m
}

func orDefault(n, otherwise uint8) uint8 {
	if n == 0 {
		return otherwise
	}
	return n
}

// hasRule reports whether the scenario has a rule.
func (m *model) hasRule(r protocolRule) bool { return m.without&r == 0 }

// domainOf returns the number of the catalog that has the entries of a cabinet.
func (m *model) domainOf(cabinet int) int {
	if m.TwoDomains {
		return cabinet
	}
	return 0
}

// stepLabel describes a step of the process that takes it, if the model makes labels.
func (m *model) stepLabel(format string, args []any) string {
	if !m.labels {
		return ""
	}
	return m.name + " " + fmt.Sprintf(format, args...)
}

// addStep adds a step to t.
func (m *model) addStep(t *modelState, format string, args ...any) {
	m.steps = append(m.steps, transition{state: *t, label: m.stepLabel(format, args)})
}

// takeWith adds a step to t that has an outcome.
func (m *model) takeWith(t *modelState, o stepOutcome, format string, args ...any) {
	m.steps = append(m.steps, transition{state: *t, label: m.stepLabel(format, args), outcome: o})
}

// loseReply adds the step to t in which the process does not receive the reply. The processes of t
// are reset to those of s, because the process repeats the request.
func (m *model) loseReply(s, t *modelState, format string, args ...any) {
	if s.lostReplies == 0 {
		return
	}
	u := *t
	u.lostReplies--
	u.writers, u.actors = s.writers, s.actors
	m.addStep(&u, format+" [applied, reply lost]", args...)
}

// addWriteStep adds the step to t. It also adds the step in which the write is applied and its
// reply is lost.
func (m *model) addWriteStep(s, t *modelState, format string, args ...any) {
	m.loseReply(s, t, format, args...)
	m.addStep(t, format, args...)
}

// newViolation returns a violation by the process that takes the step.
func (m *model) newViolation(message, format string, args ...any) *violation {
	return &violation{label: m.name + " " + fmt.Sprintf(format, args...), message: message}
}

// successors returns the steps that any process can take from s. They are valid until the
// next call.
func (m *model) successors(s *modelState) ([]transition, *violation) {
	m.steps = m.steps[:0]
	for i := range processes {
		if v := m.stepWriter(s, i); v != nil {
			return nil, v
		}
		if v := m.stepActor(s, i, m.operations[i], true); v != nil {
			return nil, v
		}
	}
	for i := range m.steps {
		m.dropUnused(&m.steps[i].state)
	}
	return m.steps, nil
}

// dropUnused removes from s the parts on which no later step depends.
func (m *model) dropUnused(s *modelState) {
	if s.staleReads == 0 {
		s.forgetVersions()
	}
	for i := range processes {
		if w := &s.writers[i]; w.working && m.jobOf(w) == nil {
			*w = writerProcess{id: w.id, job: w.job}
		}
		if a := &s.actors[i]; a.working && int(a.operation) >= len(m.operations[i]) {
			*a = actor{operation: a.operation}
		}
	}
}

// firstState returns the first state of the scenario.
func (m *model) firstState() modelState {
	var s modelState
	if m.Setup != "" {
		m.setUp(&s)
	}
	s.crashes, s.lostReplies, s.staleReads = m.Crashes, m.LostReplies, m.StaleReads
	s.rollbacks, s.eagerFlushes = m.Rollbacks, m.EagerFlushes
	s.forgetVersions()
	for i := range processes {
		s.writers[i] = writerProcess{working: len(m.jobs[i]) > 0, id: uint8(i)}
		s.actors[i] = actor{working: len(m.operations[i]) > 0, bundle: s.bundlesMade}
	}
	return s
}
