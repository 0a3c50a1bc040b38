package cosmos

import (
	"context"
	"maps"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
)

// A failover may lose newer versions of a head. If no gate is in front of the older head, it would assign
// the ordinals or slots of existing drawers again, and a cabinet with two drawers of one ordinal cannot be
// peeked. So before its first Save to a cabinet, a writer queries for drawers that are ahead of the head,
// concurrently with the reads of its index. If it finds such a drawer, it raises the head above the drawer;
// see save_raise.go. The events in the drawer are still stored, and are delivered in the order of their
// slots.
//
// Without a loss, no drawer is ahead of a current head without an intent: a Save creates or counts a drawer
// only under an intent; a rollback raises the head to the ordinals of its intent; a flush counts up to the
// fill in the head; and only a drawer that the head no longer fills is sealed. A head that was read may be
// stale. So the first step of the raise replaces the head, which is refused if another writer has replaced
// it.

// maxOrdinalGap limits the number of consecutive ordinals without a drawer document: a drawer has no
// document if all its events were in a tail. A drawer farther ahead of the head cannot result from a lost
// head. It is damaged, and a check reports it.
const maxOrdinalGap = 16

// isAhead reports whether a drawer has a higher ordinal or more slots than a head without an intent. last
// is the state of the cabinet in that head.
func (d *drawer) isAhead(last cabinetState) bool {
	if d.Ordinal > last.Ordinal {
		return d.Ordinal <= last.Ordinal+maxOrdinalGap
	}
	return last.Drawer != "" && d.ID == last.Drawer && (d.Sealed || d.Count > last.Fill)
}

// hasAhead reports whether any drawer of a cabinet is ahead of a head. last is the state of the cabinet
// in that head.
func (c *call) hasAhead(ctx context.Context, cabinet domain.CabinetKey, last cabinetState) (bool, error) {
	key := cabinetKey(cabinet)
	q := c.Query(c.r.db.cabinets, key, "SELECT * FROM c WHERE c.ordinal >= @from AND c.ordinal <= @to",
		azcosmos.QueryParameter{Name: "@from", Value: max(last.Ordinal, 1)},
		azcosmos.QueryParameter{Name: "@to", Value: last.Ordinal + maxOrdinalGap})
	for !q.IsDone() {
		items, err := q.Next(ctx, 2*maxOrdinalGap)
		if err != nil {
			return false, err
		}
		for _, item := range items {
			var d drawer
			if err := c.Decode(item, key, &d); err != nil {
				return false, err
			}
			if d.isAhead(last) {
				return true, nil
			}
		}
	}
	return false, nil
}

// unprobedCabinets returns the cabinets of the batch for which the writer has not yet searched for
// drawers ahead of the head.
func (w *recipientWriter) unprobedCabinets() map[domain.CabinetKey]bool {
	var found map[domain.CabinetKey]bool
	var last domain.CabinetKey
	for _, save := range w.batch {
		for i := range save.events {
			cabinet := save.events[i].Cabinet()
			if cabinet == last {
				continue
			}
			if last = cabinet; !w.probed[cabinet] {
				if found == nil {
					found = make(map[domain.CabinetKey]bool)
				}
				found[cabinet] = true
			}
		}
	}
	return found
}

// findAhead returns the cabinets that have a drawer ahead of w.head.
func (w *recipientWriter) findAhead(ctx context.Context, c *call, cabinets map[domain.CabinetKey]bool) (map[domain.CabinetKey]bool, error) {
	var mu sync.Mutex
	found := make(map[domain.CabinetKey]bool)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for cabinet := range cabinets {
		g.Go(func() error {
			isBehind, err := c.hasAhead(ctx, cabinet, w.head.cabinetState(nameOf(cabinet)))
			if isBehind {
				mu.Lock()
				defer mu.Unlock()
				found[cabinet] = true
			}
			return err
		})
	}
	return found, g.Wait()
}

// refreshIndex updates the index to w.head. Concurrently, it searches for drawers ahead of w.head in the
// cabinets of the batch. If it finds one, it raises the head and returns client.ErrStale.
func (w *recipientWriter) refreshIndex(ctx context.Context, c *call, ids []domain.EventID) error {
	var look sync.WaitGroup
	var ahead map[domain.CabinetKey]bool
	var lookErr error
	cabinets := w.unprobedCabinets()
	if len(cabinets) > 0 {
		look.Go(func() { ahead, lookErr = w.findAhead(ctx, c, cabinets) })
	}
	err := w.index.refresh(ctx, c, w.head, ids)
	look.Wait()
	switch {
	case lookErr != nil:
		return lookErr
	case len(ahead) > 0:
		return w.raiseLosses(ctx, c)
	case err != nil:
		return err
	}
	if w.probed == nil {
		w.probed = cabinets
	} else {
		maps.Copy(w.probed, cabinets)
	}
	return nil
}

// raiseLosses takes the next step to raise the head above all gates, and above all drawers of the
// cabinets in the head and in the batch. w.head must have no intent. It returns nil if no step is needed.
func (w *recipientWriter) raiseLosses(ctx context.Context, c *call) error {
	gates := make(map[domain.Group]*gate)
	if err := c.readGates(ctx, w.recipient, w.r.opts.Groups.All(), gates); err != nil {
		return err
	}
	lost := w.head.findInFront(gates)
	if lost == nil {
		lost = make(map[cabinetName]position)
	}
	cabinets := w.unprobedCabinets()
	if cabinets == nil {
		cabinets = make(map[domain.CabinetKey]bool)
	}
	for name, last := range w.head.Cabinets {
		cabinet, err := cabinetOf(w.recipient, name)
		if err != nil {
			return err
		}
		if cabinets[cabinet] = true; last.Raise {
			if err := w.addLoss(lost, cabinet, gates); err != nil {
				return err
			}
		}
	}
	ahead, err := w.findAhead(ctx, c, cabinets)
	if err != nil {
		return err
	}
	for cabinet := range ahead {
		if err := w.addLoss(lost, cabinet, gates); err != nil {
			return err
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return w.raiseHead(ctx, c, lost)
}

// addLoss adds a cabinet to lost, with the position of its gate.
func (w *recipientWriter) addLoss(lost map[cabinetName]position, cabinet domain.CabinetKey, gates map[domain.Group]*gate) error {
	group, err := w.r.opts.Groups.GroupOf(cabinet.Origin)
	if err != nil {
		return domain.Errorf(domain.Invalid, "cabinet %s: its origin is not configured: %w", cabinetKey(cabinet), err)
	}
	name := nameOf(cabinet)
	lost[name] = gates[group].positionIn(name, w.head.cabinetState(name))
	return nil
}

// isRaised reports whether a writer has begun to raise h and has not completed the raise. Any writer may
// complete it.
func (h *head) isRaised() bool {
	for _, last := range h.Cabinets {
		if last.Raise {
			return true
		}
	}
	return false
}
