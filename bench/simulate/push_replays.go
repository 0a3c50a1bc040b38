package simulate

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
)

// hasReplays reports whether the push simulation of a seed has an operator that replays deliveries.
func hasReplays(seed uint64) bool { return random.New(seed, 502).IntN(3) == 0 }

// A pushOperator requests replays of deliveries from any node.
type pushOperator struct {
	baseClient
	sim      *pushSimulation
	requests int
}

func (o *pushOperator) replayMany() error {
	for range 2 + o.rng.IntN(6) {
		if !o.pause(time.Duration(o.rng.IntN(20_000)) * time.Millisecond) {
			return nil
		}
		if err := o.requestReplay(); err != nil {
			return err
		}
	}
	return nil
}

// requestReplay requests the replay of one delivery or of a range, or the end of a replay. It repeats no request, even
// if the outcome is unknown.
func (o *pushOperator) requestReplay() error {
	ids := o.sim.observer.Cursors()
	if _, ok := o.awaitTurn("replays"); !ok || len(ids) == 0 {
		return nil
	}
	n := o.sim.anyNode(o.rng)
	if n == nil {
		return nil
	}
	id, err := domain.ParseCursorID(ids[o.rng.IntN(len(ids))])
	if err != nil {
		return err
	}
	standing, err := n.store.Standing(o.sim.ctx, id)
	if err != nil {
		return nil //nolint:nilerr // an injected fault
	}
	o.requests++
	r := domain.ReplayRequest{ID: fmt.Sprint("request-", o.requests)}
	now := time.Now()
	switch o.rng.IntN(4) {
	case 0:
		r.Range = &domain.ReplayRange{From: now.Add(-24 * time.Hour), To: now.Add(24 * time.Hour), Rate: 1 + o.rng.IntN(20), OnlyDead: o.rng.IntN(2) == 0}
	case 1:
		if standing.Replay != nil {
			r.Stop = standing.Replay.ID
			break
		}
		fallthrough
	default:
		p := standing.Position([]int{0, 0, 4}[o.rng.IntN(3)])
		if p.Number == 0 {
			return nil
		}
		p.Number = int64(o.rng.IntN(int(p.Number)))
		p.Segment, p.Page = 0, 0 // the page in a position may precede the page of the entry
		if !o.sim.matches(id.String(), entryOf(o.sim.stream, p.EntryID)) {
			return nil
		}
		r.Delivery = &domain.ReplayDelivery{Position: p, Published: now}
	}
	if _, err := n.store.AddReplay(o.sim.ctx, id, standing.Followed, r); err != nil {
		return nil //nolint:nilerr // it is refused, or fails by an injected fault
	}
	n.notifyChanged(id)
	o.sim.MarkReached("a replay was requested")
	return nil
}
