package cosmos

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
)

// With the ordering domain.ByRecipient, a bundle must not contain a number above that of a waiting event
// in another cabinet of its group. Catalog entries may be lost or too high, so they cannot determine
// where that event is. So a Peek reads the first event of every cabinet. The first event after a position
// never changes, so a node caches it.
//
// The order is valid even with a stale head, because missing events have higher numbers than the events in
// that head. A stale gate is harmless, because the bundle is opened only if the gate is unchanged.

// chooseInOrder returns the run of the candidate whose first event has the smallest number. The run ends
// before the first event of the next candidate of the same group.
func (c *call) chooseInOrder(ctx context.Context, candidates []*peekCandidate) (*eventRange, error) {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(drawersPerBundle)
	for _, cand := range candidates {
		if cand.first = c.r.known.firstSequence(cand.cabinet, cand.at); cand.first > 0 {
			continue
		}
		g.Go(func() error {
			err := cand.recordLoss(cand.readFirst(gctx, c))
			if err == nil && !cand.isLost() {
				c.r.known.rememberFirst(cand.cabinet, cand.at, cand.first)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var chosen *peekCandidate
	for chosen == nil || chosen.run == nil {
		sound := dropGroupsWithLosses(candidates)
		if len(sound) == 0 {
			return nil, candidates[slices.IndexFunc(candidates, (*peekCandidate).isLost)].lost
		}
		chosen = oldestCandidate(sound)
		if chosen.run != nil {
			break
		}
		if err := chosen.recordLoss(chosen.readFirst(ctx, c)); err != nil {
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

// dropGroupsWithLosses removes all candidates of a group in which a cabinet has lost its first event,
// because no event of the group may overtake the lost event.
func dropGroupsWithLosses(candidates []*peekCandidate) []*peekCandidate {
	return slices.DeleteFunc(slices.Clone(candidates), func(cand *peekCandidate) bool {
		return slices.ContainsFunc(candidates, func(other *peekCandidate) bool { return other.isLost() && other.group == cand.group })
	})
}
