package history

import (
	"math/rand/v2"
	"slices"
)

// CheckPlainly is Check without the reductions that make it fast.
func (h History) CheckPlainly(opts Options) Verdict {
	t, steps := tableOf(h.operations)
	search := &modelSearch{hubModel: hubModel{nameTable: t, Options: opts, blind: true}, left: opts.Steps}
	return search.runSearch(steps).Verdict
}

// Placed returns the number of operations for which a search must find a place in the order.
func (h History) Placed(opts Options) int {
	t, steps := tableOf(h.operations)
	return len((&hubModel{nameTable: t, Options: opts}).narrowSteps(steps))
}

// Corrupted returns a copy of h with one answer changed.
func (h History) Corrupted(random *rand.Rand) History {
	operations := slices.Clone(h.operations)
	i := random.IntN(len(operations))
	op := *operations[i]
	operations[i] = &op
	switch {
	case op.outcome == Done:
		op.outcome = NotFound
	case op.outcome == NotFound:
		op.outcome = Done
	case op.outcome == Accepted:
		op.outcome, op.tally = Rejected, nil
	case op.outcome == None:
		op.outcome, op.done = Unknown, forever
	case op.outcome == Returned && random.IntN(2) == 0:
		op.outcome, op.bundle = None, Bundle{}
	case op.outcome == Returned && len(op.bundle.Events) > 0:
		op.bundle.Events = op.bundle.Events[:len(op.bundle.Events)-1]
	case op.kind == send:
		op.outcome, op.done = Accepted, op.call+1
	}
	return History{operations}
}

// Stretched returns a copy of h in which every operation begins earlier and ends later, by random times up to by. The
// copy is legal if h is legal.
func (h History) Stretched(random *rand.Rand, by int64) History {
	operations := make([]*mailboxOperation, len(h.operations))
	for i, op := range h.operations {
		longer := *op
		longer.call -= random.Int64N(by + 1)
		if longer.done < forever {
			longer.done += random.Int64N(by + 1)
		}
		operations[i] = &longer
	}
	return History{operations}
}
