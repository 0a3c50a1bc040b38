package smallsaves

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"
	"unsafe"
)

// Limits bound an exploration.
type Limits struct {
	States   int   // distinct states
	Frontier int64 // bytes of the states that were found but not explored
}

// A Result is the result of an exploration.
type Result struct {
	States      int // distinct
	Transitions int
	Depth       int // maximum number of steps to a state
	Drained     int // distinct documents from which an actor drained
	Exhausted   bool
	Reason      string // reason why the scenario is not exhausted
	Violation   *Violation
	Took        time.Duration
}

// A Violation is a violated rule, with the shortest trace to the violation.
type Violation struct {
	Message string
	Trace   []string
}

// String returns the message and the trace.
func (v *Violation) String() string {
	text := v.Message
	for n, line := range v.Trace {
		text += fmt.Sprintf("\n%4d  %s", n+1, line)
	}
	return text
}

// Explore visits all states of a scenario, breadth first, until it finds a violation or
// exceeds a limit.
func Explore(ctx context.Context, s *Scenario, limits Limits) Result {
	x := &exploration{
		model: newModel(s), limits: limits, seed: maphash.MakeSeed(),
		parents: map[uint64]uint64{}, drained: map[uint64]struct{}{},
	}
	began := time.Now()
	x.run(ctx)
	x.result.States, x.result.Drained, x.result.Took = len(x.parents), len(x.drained), time.Since(began)
	return x.result
}

// An exploration identifies a state by a hash of 64 bits, and stores the state itself only until
// the state is explored. With 10 million states the chance that two share a hash is below 1 in
// 300,000.
type exploration struct {
	model   *model
	limits  Limits
	seed    maphash.Seed
	parents map[uint64]uint64   // for each found state, the hash of the state before it
	drained map[uint64]struct{} // hashes of documents
	result  Result
}

// hashState returns the hash of s. It never returns 0, which is the parent of the first state.
func (x *exploration) hashState(s *modelState) uint64 {
	return maphash.Bytes(x.seed, unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Sizeof(*s))) | 1 //nolint:gosec // a state consists of bytes, without padding
}

func (x *exploration) run(ctx context.Context) {
	first := x.model.firstState()
	x.parents[x.hashState(&first)] = 0
	var level, next stateQueue
	level.push(&first)
	for level.n > 0 {
		for s := range level.drain() {
			if ctx.Err() != nil {
				x.result.Reason = "it was interrupted"
				return
			}
			if !x.exploreState(s, &next) {
				return
			}
			if x.exceedsLimit(level.bytes() + next.bytes()) {
				return
			}
		}
		level, next = next, stateQueue{}
		x.result.Depth++
	}
	switch {
	case x.model.cut > 0:
		x.result.Reason = fmt.Sprintf("%d steps had no room in a state", x.model.cut)
	case x.model.cutDrains > 0:
		x.result.Reason = fmt.Sprintf("%d drains had no room in a state", x.model.cutDrains)
	default:
		x.result.Exhausted = true
	}
}

// exceedsLimit reports whether a limit is exceeded.
func (x *exploration) exceedsLimit(frontier int64) bool {
	switch {
	case x.limits.States > 0 && len(x.parents) > x.limits.States:
		x.result.Reason = fmt.Sprintf("it has more than %d states", x.limits.States)
	case x.limits.Frontier > 0 && frontier > x.limits.Frontier:
		x.result.Reason = fmt.Sprintf("its frontier takes more than %d MB", x.limits.Frontier>>20)
	default:
		return false
	}
	return true
}

// exploreState adds the states that follow s to next. It returns false after a violation.
func (x *exploration) exploreState(s *modelState, next *stateQueue) bool {
	m, from := x.model, x.hashState(s)
	if message, trace := x.checkDrain(s); message != "" {
		return x.recordViolation(message, from, trace...)
	}
	steps, v := m.successors(s)
	if v != nil {
		return x.recordViolation(v.message, from, v.label)
	}
	if len(steps) == 0 && m.Leaks && s.leaks() {
		return x.recordViolation("a page is left that nothing names", from)
	}
	for i := range steps {
		t := &steps[i].state
		x.result.Transitions++
		h := x.hashState(t)
		if _, known := x.parents[h]; known {
			continue
		}
		x.parents[h] = from
		if message := m.checkDocuments(t); message != "" {
			return x.recordViolation(message, h)
		}
		next.push(t)
	}
	return true
}

// checkDrain checks the events that an actor receives from the documents of s. Equal documents are
// checked once.
func (x *exploration) checkDrain(s *modelState) (message string, trace []string) {
	documents := s.documents()
	h := x.hashState(&documents)
	if _, done := x.drained[h]; done {
		return "", nil
	}
	x.drained[h] = struct{}{}
	if message, _ = x.model.drainAlone(&documents); message == "" {
		message, _ = x.model.saveAgain(&documents)
	}
	if message == "" {
		return "", nil
	}
	labelled := *x.model
	labelled.labels = true
	message, trace = labelled.drainAlone(&documents)
	if message == "" {
		message, trace = labelled.saveAgain(&documents)
	}
	return message, append([]string{"then, alone and without faults:"}, trace...)
}

// recordViolation records a violation in or after the state with the hash at. The trace leads to
// that state, and continues with the steps after it.
func (x *exploration) recordViolation(message string, at uint64, after ...string) bool {
	var way []uint64
	for h := at; h != 0; h = x.parents[h] {
		way = append(way, h)
	}
	labelled := *x.model
	labelled.labels = true
	s := labelled.firstState()
	var trace []string
	for i := len(way) - 2; i >= 0; i-- {
		steps, _ := labelled.successors(&s)
		for n := range steps {
			if x.hashState(&steps[n].state) == way[i] {
				trace = append(trace, steps[n].label)
				s = steps[n].state
				break
			}
		}
	}
	x.result.Violation = &Violation{Message: message, Trace: append(trace, after...)}
	return false
}
