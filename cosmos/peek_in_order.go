package cosmos

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
)

// With the ordering domain.ByRecipient, a bundle ends where an older event waits in
// another cabinet of its group. Entries cannot say where that is: one that is lost
// or too high would let the bundle overtake. So the cabinets themselves are asked,
// each of them once behind each place; which event is the first there never
// changes, so a node remembers it.
//
// The order stays valid, however old the head was that it was computed from: what it does
// not show has higher numbers than all that it does. It cannot rest on an old gate,
// since the bundle is only opened if the gate is still the same, and the places of
// all cabinets of the group are in that one gate.

// chooseInOrder returns the run of the candidate whose first event has the smallest
// sequence number, up to where the next candidate of its group begins.
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

// withoutGroupsThatLost returns the candidates of the groups in which no cabinet has lost its
// first event: nothing of their groups may overtake that.
func withoutGroupsThatLost(candidates []*peekCandidate) []*peekCandidate {
	return slices.DeleteFunc(slices.Clone(candidates), func(cand *peekCandidate) bool {
		return slices.ContainsFunc(candidates, func(other *peekCandidate) bool { return other.isLost() && other.group == cand.group })
	})
}
