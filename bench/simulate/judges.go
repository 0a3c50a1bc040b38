package simulate

import (
	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/invariants"
	"github.com/messagehub/messagehub/bench/simulate/invariants/objects"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A judge compares the commits of some containers with their rules.
type judge interface {
	Commit(changes []embedded.Change) error
}

// newJudges returns the judges that package containers names.
func newJudges(w *world) map[containers.Judge]judge {
	observer := invariants.New(w.plan.capacity)
	observer.Reached = w.reached
	ofObjects := objects.New()
	ofObjects.Reached = w.reached
	return map[containers.Judge]judge{
		containers.Invariants: observer, containers.InvariantsPush: push.New(push.Witness{Reached: w.reached}), containers.InvariantsObjects: ofObjects,
	}
}

// committed is called for every commit of the engine, whatever becomes of its answer. It
// has the judge of each container compare the changes with the rules.
func (w *world) committed(changes []embedded.Change) {
	byJudge := make(map[containers.Judge][]embedded.Change)
	var order []containers.Judge
	for _, c := range changes {
		known, err := containers.Find(c.Container)
		if err != nil {
			w.fail(err)
			return
		}
		if byJudge[known.Judge] == nil {
			order = append(order, known.Judge)
		}
		byJudge[known.Judge] = append(byJudge[known.Judge], c)
	}
	if w.shelf != nil {
		w.shelf.put(changes)
	}
	if w.vandalised.Load() {
		return
	}
	w.outbox.committed(changes)
	for _, name := range order {
		if err := w.judges[name].Commit(byJudge[name]); err != nil {
			w.fail(err)
		}
	}
}
