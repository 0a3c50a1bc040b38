package cosmos

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
)

// Before its first Save to a group, a writer compares the head with the gate of the group; see
// save_raise.go.

// isInFront reports whether the position of a gate is after all events in a head. last is the state of
// the cabinet in that head.
func (at position) isInFront(last cabinetState) bool {
	return at.Sequence > last.Sequence || at.Total > last.Total || at.Ordinal > last.Ordinal ||
		last.Drawer != "" && at.Ordinal == last.Ordinal && at.Slot > last.Fill
}

// findInFront returns the cabinets in which a gate is in front of the head h, with the positions of these
// gates.
func (h *head) findInFront(gates map[domain.Group]*gate) map[cabinetName]position {
	var found map[cabinetName]position
	add := func(name cabinetName, at position) {
		if found == nil {
			found = make(map[cabinetName]position)
		}
		found[name] = at
	}
	for _, g := range gates {
		for name := range g.At {
			if at := g.positionIn(name, h.Cabinets[name]); at.isInFront(h.lastEver(name)) {
				add(name, at)
			}
		}
		if g.Removed > h.Watermark {
			add(removedCabinets, position{Sequence: max(g.Removed, found[removedCabinets].Sequence)})
		}
	}
	return found
}

// removedCabinets is the key in the result of findInFront for all cabinets whose positions were removed
// from a gate.
const removedCabinets cabinetName = ""

// readHeadAndGates reads the head unless w.head is set. Concurrently, it reads the gates of the batch
// that were not compared with the head yet.
func (w *recipientWriter) readHeadAndGates(ctx context.Context, c *call) (map[domain.Group]*gate, error) {
	if w.reserved == nil && w.mustReadHead.Swap(false) {
		w.head = nil
	}
	groups, err := w.uncomparedGroups()
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		if err := w.readHead(ctx, c); err != nil {
			return nil, err
		}
		if groups, err = w.uncomparedGroups(); err != nil || len(groups) == 0 { // readHead clears w.compared if the new head is older than the previous one
			return nil, err
		}
	}
	gates := make(map[domain.Group]*gate, len(groups))
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.readHead(gctx, c) })
	g.Go(func() error { return c.readGates(gctx, w.recipient, groups, gates) })
	return gates, g.Wait()
}

// uncomparedGroups returns the groups of the batch whose gates were not compared with the head yet.
func (w *recipientWriter) uncomparedGroups() ([]domain.Group, error) {
	var groups []domain.Group
	var last domain.Origin
	for _, save := range w.batch {
		for i := range save.events {
			origin := save.events[i].Origin
			if origin == last {
				continue
			}
			last = origin
			group, err := w.r.opts.Groups.GroupOf(origin)
			if err != nil {
				return nil, err
			}
			if !w.compared[group] && !slices.Contains(groups, group) {
				groups = append(groups, group)
			}
		}
	}
	return groups, nil
}

// compareGates records that w.head is not behind the gates. If w.head is behind a gate, or another writer
// has begun to raise it, compareGates takes the next step of the raise and returns client.ErrStale.
func (w *recipientWriter) compareGates(ctx context.Context, c *call, gates map[domain.Group]*gate) error {
	if w.head.Watermark > w.head.Reserved { // a Save would assign numbers of visible events again
		return domain.Errorf(domain.Damaged, "head of %s: the watermark %d is above the reserved number %d", w.recipient, w.head.Watermark, w.head.Reserved)
	}
	if len(w.head.findInFront(gates)) > 0 || w.head.isRaised() {
		return w.raiseLosses(ctx, c)
	}
	if len(gates) > 0 && w.compared == nil {
		w.compared = make(map[domain.Group]bool)
	}
	for group := range gates {
		w.compared[group] = true
	}
	return nil
}
