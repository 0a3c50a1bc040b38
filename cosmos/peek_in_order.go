package cosmos

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
)

// With the ordering domain.ByRecipient, a bundle ends before an event of another cabinet of its group whose
// number is between the numbers of the bundle. Entries cannot prove where that event is: with an entry
// that is lost or too high, the bundle would overtake the event. So a Peek reads the first event of every
// cabinet. The first event after a position never changes, so a node remembers it and reads each once.
//
// A stale head gives a valid order, because events that the head does not have get higher numbers than all
// its events. A stale gate cannot be used: the bundle is opened only if the gate is unchanged, and this
// gate has the positions of all cabinets of the group.

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

// dropGroupsWithLosses removes all candidates of a group if one of its cabinets has lost its first event:
// no event of the group may overtake the lost event.
func dropGroupsWithLosses(candidates []*peekCandidate) []*peekCandidate {
	return slices.DeleteFunc(slices.Clone(candidates), func(cand *peekCandidate) bool {
		return slices.ContainsFunc(candidates, func(other *peekCandidate) bool { return other.isLost() && other.group == cand.group })
	})
}
