package simulate

import (
	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/invariants"
	"github.com/messagehub/messagehub/bench/simulate/invariants/objects"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// An invariantChecker compares the commits of some containers with their rules.
type invariantChecker interface {
	Commit(changes []embedded.Change) error
}

// newCheckers returns the checkers that package containers names.
func newCheckers(sim *simulation) map[containers.Checker]invariantChecker {
	observer := invariants.New(sim.plan.capacity)
	observer.Reached = sim.MarkReached
	ofObjects := objects.New()
	ofObjects.Reached = sim.MarkReached
	return map[containers.Checker]invariantChecker{
		containers.Invariants: observer, containers.InvariantsPush: push.New(push.Callbacks{Reached: sim.MarkReached}), containers.InvariantsObjects: ofObjects,
	}
}

// checkCommit is called for every commit of the engine, whether its answer arrives or not. Each container's checker
// compares the changes with its rules.
func (sim *simulation) checkCommit(changes []embedded.Change) {
	byJudge := make(map[containers.Checker][]embedded.Change)
	var order []containers.Checker
	for _, c := range changes {
		known, err := containers.Find(c.Container)
		if err != nil {
			sim.Fail(err)
			return
		}
		if byJudge[known.Checker] == nil {
			order = append(order, known.Checker)
		}
		byJudge[known.Checker] = append(byJudge[known.Checker], c)
	}
	if sim.env.stored != nil {
		sim.env.stored.applyCommit(changes)
	}
	if sim.faults.storeCorrupted.Load() {
		return
	}
	sim.work.outbox.noteCommit(changes)
	for _, name := range order {
		if err := sim.work.checkers[name].Commit(byJudge[name]); err != nil {
			sim.Fail(err)
		}
	}
}
