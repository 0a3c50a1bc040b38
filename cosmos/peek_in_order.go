package cosmos

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
)

// With the ordering domain.ByRecipient, a bundle ends before an older event that waits in another
// cabinet of its group. Entries cannot show such events: with an entry that is lost or too high, the
// bundle would overtake one. So the cabinets themselves are read, each once after each position. The
// first event after a position never changes, so a node remembers it.
//
// The order is valid however old the head is from which it was computed: events that this head does not
// show have higher numbers than all that it shows. It cannot be based on an old gate, since the bundle
// is opened only if the gate is unchanged, and that one gate has the positions of all cabinets of the
// group.

// chooseInOrder returns the run of the candidate whose first event has the smallest sequence number, up
// to the first event of the next candidate of its group.
func (c *call) chooseInOrder(ctx context.Context, candidates []*peekCandidate) (*eventRange, error) {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(drawersPerBundle)
	for _, cand := range candidates {
		if cand.first = c.r.known.firstSequence(cand.cabinet, cand.at); cand.first > 0 {
			continue
		}
		g.Go(func() error {
			err := cand.unlessLost(cand.readFirst(gctx, c))
			if err == nil && !cand.isLost() {
				c.r.known.sawFirst(cand.cabinet, cand.at, cand.first)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var chosen *peekCandidate
	for chosen == nil || chosen.run == nil {
		sound := withoutGroupsThatLost(candidates)
		if len(sound) == 0 {
			return nil, candidates[slices.IndexFunc(candidates, (*peekCandidate).isLost)].lost
		}
		chosen = oldestCandidate(sound)
		if chosen.run != nil {
			break
		}
		if err := chosen.unlessLost(chosen.readFirst(ctx, c)); err != nil {
			return nil, err
		}
	}
	for _, cand := range candidates {
		if cand != chosen && cand.group == chosen.group && (chosen.run.before == 0 || cand.first < chosen.run.before) {
			chosen.run.before = cand.first
		}
	}
	return chosen.run, nil
}

// withoutGroupsThatLost returns the candidates of the groups in which no cabinet has lost its first
// event: no event of such a group may overtake the lost one.
func withoutGroupsThatLost(candidates []*peekCandidate) []*peekCandidate {
	return slices.DeleteFunc(slices.Clone(candidates), func(cand *peekCandidate) bool {
		return slices.ContainsFunc(candidates, func(other *peekCandidate) bool { return other.isLost() && other.group == cand.group })
	})
}
