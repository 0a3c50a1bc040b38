package simulate

import (
	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/invariants"
	"github.com/messagehub/messagehub/bench/simulate/invariants/objects"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// An invariantChecker checks the commits of some containers against the invariants.
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

// checkCommit passes the changes of a commit to the checkers of their containers. The engine calls it for every commit,
// whether the response arrives or not.
func (sim *simulation) checkCommit(changes []embedded.Change) {
	byChecker := make(map[containers.Checker][]embedded.Change)
	var order []containers.Checker
	for _, c := range changes {
		known, err := containers.Find(c.Container)
		if err != nil {
			sim.Fail(err)
			return
		}
		if byChecker[known.Checker] == nil {
			order = append(order, known.Checker)
		}
		byChecker[known.Checker] = append(byChecker[known.Checker], c)
	}
	if sim.env.stored != nil {
		sim.env.stored.applyCommit(changes)
	}
	if sim.faults.storeCorrupted.Load() {
		return
	}
	sim.work.outbox.noteCommit(changes)
	for _, name := range order {
		if err := sim.work.checkers[name].Commit(byChecker[name]); err != nil {
			sim.Fail(err)
		}
	}
}
