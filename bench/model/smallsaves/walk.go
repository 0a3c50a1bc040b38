package smallsaves

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"time"
)

// maxWalk limits the steps of one walk.
const maxWalk = 400

// Walks returns the scenario for Walk, which is too large for a complete exploration.
func Walks() Scenario {
	return Scenario{
		Name: "walks", Tail: 2, Capacity: 3, MergeCommits: true, EagerFlushes: 2,
		Writers: writes{"1/L25/3/F", "2/F/L46/3"}, Actors: reads{"12112", "1212"},
		Crashes: 2, LostReplies: 2, StaleReads: 4, Versions: 2, Rollbacks: 3, Lenient: true, Choice: true,
	}
}

// Walk takes n random walks through a scenario. A walk ends when no process has a step left, or
// when a state has no room for another bundle. Result.Transitions counts the steps.
func Walk(ctx context.Context, s *Scenario, n int) Result {
	x := &exploration{model: newModel(s), seed: maphash.MakeSeed(), parents: map[uint64]uint64{}, drained: map[uint64]struct{}{}}
	x.model.labels = true
	random := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	for range n {
		if ctx.Err() != nil || !x.walkRandomly(random) {
			break
		}
	}
	x.result.States, x.result.Drained, x.result.Took = len(x.parents), len(x.drained), time.Since(began)
	return x.result
}

// walkRandomly takes one random walk. It returns false after a violation.
func (x *exploration) walkRandomly(random *rand.Rand) bool {
	m, s := x.model, x.model.firstState()
	var trace []string
	fail := func(message string, more ...string) bool {
		x.result.Violation = &Violation{Message: message, Trace: append(trace, more...)}
		return false
	}
	for len(trace) < maxWalk && s.bundlesMade < maxBundles-2 {
		steps, v := m.successors(&s)
		if v != nil {
			return fail(v.message, v.label)
		}
		if len(steps) == 0 {
			break
		}
		next := &steps[random.IntN(len(steps))]
		trace = append(trace, next.label)
		s = next.state
		x.result.Transitions++
		x.parents[x.hashState(&s)] = 0
		if message := m.checkDocuments(&s); message != "" {
			return fail(message)
		}
		if message, more := x.checkDrain(&s); message != "" {
			return fail(message, more...)
		}
	}
	x.result.Depth = max(x.result.Depth, len(trace))
	return true
}
