package cosmos

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Peek reads the gates and the head concurrently. If a bundle is open, Peek returns it. Otherwise the
// candidates are the cabinets that, according to the head, have events after the position of the gate.
// Without a candidate, Peek returns domain.ErrNoData after two requests. If there are several candidates,
// the head or the entries in the catalog indicate which candidate has the event with the smallest number.
// Peek confirms or corrects this choice by reading the first event of the candidate after the position of
// the gate. Add then opens the bundle and replaces the gate in one batch.
//
// Before this batch, a Peek may seal drawers and repair entries. These writes are valid without the batch.

// NextUnacknowledged implements repository.DataAvailable.
func (r *Repository) NextUnacknowledged(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (repository.Next, error) {
	r.hints.awaitHints(ctx, recipient)
	c := r.beginCall("peek")
	var next repository.Next
	err := c.Retry(ctx, func() (err error) {
		next, err = c.nextBundle(ctx, recipient, groups)
		return err
	})
	if err != nil && !errors.Is(err, domain.ErrNoData) {
		err = client.Classify("peek for "+recipient.String(), err)
	}
	return next, err
}

func (c *call) nextBundle(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (repository.Next, error) {
	gates, h, err := c.readGatesAndHead(ctx, recipient, groups)
	if err == nil && anyFrozen(gates) {
		err = repository.ErrFrozen
	}
	if err != nil {
		return repository.Next{}, err
	}
	if err := c.reportInFront(ctx, recipient, gates, h); err != nil {
		return repository.Next{}, err
	}
	candidates, waiting, err := c.findCandidates(recipient, gates, h)
	if err != nil {
		return repository.Next{}, err
	}
	if open := oldestOpen(gates); open != nil {
		next, err := c.openBundle(ctx, open, gates, h)
		next.Waiting = waiting
		return next, err
	}
	if h.etag == "" && len(candidates) == 0 {
		return repository.Next{}, repository.ErrNoMailbox
	}
	if len(candidates) == 0 {
		return repository.Next{}, domain.ErrNoData
	}
	run, err := c.chooseCandidate(ctx, candidates)
	c.reportLost(recipient, candidates, groups)
	if err != nil {
		return repository.Next{}, err
	}
	run.head, run.gates = h, gates
	return repository.Next{Run: run, Waiting: waiting}, nil
}

// openBundle returns the open bundle of g. Where reads may be stale, it confirms that the bundle is open.
func (c *call) openBundle(ctx context.Context, g *gate, gates map[domain.Group]*gate, h *head) (repository.Next, error) {
	readOpen := c.readOpen
	if c.r.db.ReadsMayBeStale() {
		readOpen = c.proveOpen
	}
	doc, err := readOpen(ctx, g)
	if err != nil {
		return repository.Next{}, err
	}
	b, err := doc.toBundle()
	if err == nil && gateID(b.Group) != g.ID {
		err = domain.Errorf(domain.Damaged, "bundle %s of %s says that it is of group %s, and %s has it open", doc.ID, g.Recipient, b.Group, g.ID)
	}
	if err != nil {
		return repository.Next{}, err
	}
	run, err := c.runOf(&b, doc, h)
	if err != nil {
		return repository.Next{}, err
	}
	run.head, run.gates = h, gates
	return repository.Next{Open: &b, Run: run}, nil
}

// Find implements repository.Bundles.
func (r *Repository) Find(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (domain.Bundle, repository.Run, error) {
	c := r.beginCall("find")
	var found repository.Next
	err := c.Retry(ctx, func() (err error) {
		found, err = c.findOpenBundle(ctx, recipient, id)
		return err
	})
	if err != nil {
		return domain.Bundle{}, nil, client.Classify("find bundle "+id.String(), err)
	}
	return *found.Open, found.Run, nil
}

// findOpenBundle returns the bundle with the given id if it is the open bundle of a group.
func (c *call) findOpenBundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.Next, error) {
	gates, h, err := c.readGatesAndHead(ctx, recipient, c.r.opts.Groups.All())
	if err == nil && anyFrozen(gates) {
		err = repository.ErrFrozen
	}
	if err != nil {
		return repository.Next{}, err
	}
	for _, g := range gates {
		if g.Open == id.String() {
			return c.openBundle(ctx, g, gates, h)
		}
	}
	return repository.Next{}, c.whyNotOpen(ctx, recipient, id, gates)
}

// runOf returns the slots of an open bundle as a run. Some slots may be in the tail of h. It returns
// client.ErrNotYetVisible if h is older than the bundle and does not include all its slots.
func (c *call) runOf(b *domain.Bundle, doc *bundleDoc, h *head) (*eventRange, error) {
	r := &eventRange{call: c, group: b.Group, cabinet: b.Cabinet, open: doc}
	last := h.Cabinets[doc.Cabinet]
	for _, s := range doc.Ranges {
		if s.Ordinal > last.Ordinal || s.Drawer == last.Drawer && s.To > last.Fill {
			return nil, client.ErrNotYetVisible
		}
		r.parts = append(r.parts, weightedRange{slotRange: s})
	}
	var err error
	if r.tail, err = last.decodeTail(b.Cabinet); err != nil {
		return nil, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(b.Cabinet), err)
	}
	return r, nil
}

// A peekCandidate is a cabinet with visible unacknowledged events.
type peekCandidate struct {
	group   domain.Group
	cabinet domain.CabinetKey
	last    cabinetState
	head    *head
	floor   int // drawers with a smaller ordinal may have been removed
	gate    *gate
	at      position

	entry *catalogEntry // catalog entry of the cabinet with the smallest ordinal, or nil
	run   *eventRange   // set after the first event of the candidate was read
	first domain.Sequence
	lost  error // a lostError if the first event of the candidate is known to be lost; otherwise nil
}

// findCandidates returns the cabinets that, according to the head, have events after the positions of the
// gates. It also returns the number of these events.
func (c *call) findCandidates(recipient domain.ActorID, gates map[domain.Group]*gate, h *head) ([]*peekCandidate, int64, error) {
	var found []*peekCandidate
	var waiting int64
	for name, last := range h.Cabinets {
		cabinet, err := cabinetOf(recipient, name)
		if err != nil {
			return nil, 0, err
		}
		group, err := c.r.opts.Groups.GroupOf(cabinet.Origin)
		if err != nil {
			return nil, 0, domain.Errorf(domain.Damaged, "actor %s has events of an origin that this configuration does not name: %w", recipient, err)
		}
		g, isRequested := gates[group]
		if !isRequested {
			continue
		}
		at := g.positionIn(name, last)
		if last.Sequence > at.Sequence {
			waiting += last.Total - at.Total
			found = append(found, &peekCandidate{
				group: group, cabinet: cabinet, last: last, head: h, floor: h.cabinetFloor(name), gate: g, at: at,
			})
		}
	}
	slices.SortFunc(found, func(a, b *peekCandidate) int { return strings.Compare(nameOf(a.cabinet), nameOf(b.cabinet)) })
	return found, waiting, nil
}

// chooseCandidate returns the run of the candidate whose first event has the smallest number. It selects
// the candidate by the head or the catalog and confirms the choice by reading the first event. It repairs
// a missing entry, or an entry with a number that is too low.
func (c *call) chooseCandidate(ctx context.Context, candidates []*peekCandidate) (*eventRange, error) {
	if c.r.opts.Ordering == domain.ByRecipient {
		return c.chooseInOrder(ctx, candidates)
	}
	if len(candidates) == 1 {
		cand := candidates[0]
		if err := cand.recordLoss(cand.readFirst(ctx, c)); err != nil { // a single candidate needs no entry
			return nil, err
		}
		return cand.run, cand.lost
	}
	var others []*peekCandidate // candidates whose first event is not in the head
	for _, cand := range candidates {
		if err := cand.setFirstFromHead(); err != nil {
			return nil, err
		}
		if cand.first == 0 {
			others = append(others, cand)
		}
	}
	if err := c.readEntries(ctx, others); err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(drawersPerBundle)
	for _, cand := range others {
		if cand.canTrustEntry() {
			cand.first = cand.entry.NextSequence
			continue
		}
		g.Go(func() error { return cand.recordLoss(cand.readAndRepair(gctx, c)) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for {
		sound := slices.DeleteFunc(slices.Clone(candidates), (*peekCandidate).isLost)
		if len(sound) == 0 {
			return nil, candidates[0].lost
		}
		cand := oldestCandidate(sound)
		if cand.run != nil {
			return cand.run, nil
		}
		if err := cand.recordLoss(cand.readAndRepair(ctx, c)); err != nil {
			return nil, err
		}
	}
}

// isLost reports whether the candidate's first event is known to be lost.
func (cand *peekCandidate) isLost() bool { return cand.lost != nil }

// recordLoss records err in cand and returns nil if err is a lostError. Otherwise it returns err.
func (cand *peekCandidate) recordLoss(err error) error {
	if isLost(err) {
		cand.lost = err
		return nil
	}
	return err
}

// isInTail reports whether the first event after the position at is in the tail. In that case, all events
// in pages are acknowledged, and no unacknowledged event is in an earlier drawer.
func isInTail(last cabinetState, at position) bool {
	return len(last.Tail) > 0 && at.Total >= last.Total-int64(last.tailLen())
}

// isInTail reports whether the candidate's first event is in the tail.
func (cand *peekCandidate) isInTail() bool { return isInTail(cand.last, cand.at) }

// setFirstFromHead sets cand.first to the number of the first event if the head contains this number, and
// otherwise to 0.
func (cand *peekCandidate) setFirstFromHead() (err error) {
	cand.first = cand.last.frontBehind(cand.at)
	if cand.isInTail() {
		cand.first, err = cand.firstInTail()
	}
	return err
}

// firstInTail returns the number of the first unacknowledged event in the tail.
func (cand *peekCandidate) firstInTail() (domain.Sequence, error) {
	t, err := cand.last.decodeTail(cand.cabinet)
	if err != nil {
		return 0, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cand.cabinet), err)
	}
	for i := range t.events {
		if t.events[i].Sequence > cand.at.Sequence {
			return t.events[i].Sequence, nil
		}
	}
	return 0, domain.Errorf(domain.Damaged, "cabinet %s: its last number %d is not in its tail", cabinetKey(cand.cabinet), cand.last.Sequence)
}

// canTrustEntry reports whether the candidate's entry may determine its first event. Only the entry of
// the drawer at the gate's position may do so. A flush writes no entries, so the entry of a later drawer
// does not rule out an event in an earlier drawer.
func (cand *peekCandidate) canTrustEntry() bool {
	return cand.entry != nil && cand.entry.Ordinal == max(cand.at.Ordinal, cand.floor, 1) &&
		cand.entry.NextSequence > cand.at.Sequence && cand.at.Sequence >= cand.at.Doubt
}

// oldestCandidate returns the candidate whose first event has the smallest number.
func oldestCandidate(candidates []*peekCandidate) *peekCandidate {
	return slices.MinFunc(candidates, func(a, b *peekCandidate) int { return cmp.Compare(a.first, b.first) })
}

// readFirst reads the candidate's first event.
func (cand *peekCandidate) readFirst(ctx context.Context, c *call) error {
	run, err := c.newRun(ctx, cand.group, cand.cabinet, cand.last, cand.floor, cand.gate, cand.at)
	if err != nil {
		return err
	}
	first, err := run.peekFirst(ctx)
	if err != nil {
		return cand.whyUnreadable(ctx, c, run, err)
	}
	cand.run, cand.first = run, first.Sequence
	return nil
}

// readAndRepair reads the candidate's first event and repairs its entry if needed.
func (cand *peekCandidate) readAndRepair(ctx context.Context, c *call) error {
	if err := cand.readFirst(ctx, c); err != nil {
		return err
	}
	cand.repairEntry(ctx, c)
	return nil
}

// repairEntry makes the candidate's catalog entry point at its first event, which must have been read. It
// does nothing if the head contains the number of that event.
func (cand *peekCandidate) repairEntry(ctx context.Context, c *call) {
	if cand.isInTail() || cand.last.frontBehind(cand.at) > 0 {
		return
	}
	if cand.entry == nil || cand.entry.NextSequence < cand.first {
		c.repairEntry(ctx, cand.cabinet, cand.entry, cand.run.parts[0].slotRange, cand.first)
	}
}

// repairEntry makes the entry of a cabinet in the catalog point at its first event, which is in drawer s.
// Every write is conditional on the etag of the entry that was read. If a write is refused, another writer
// has changed the entry, and the next Peek reads the entry again.
func (c *call) repairEntry(ctx context.Context, cabinet domain.CabinetKey, seen *catalogEntry, s slotRange, first domain.Sequence) {
	c.r.metrics.repairs.WithLabelValues(pointerRepair).Inc()
	key := catalogKey(cabinet.Recipient, cabinet.Origin)
	// If the node crashes after the deletion, the cabinet has no entry, or only the entry of a later
	// drawer. The next Peek reads the cabinet and restores the entry.
	if seen != nil && seen.Ordinal < s.Ordinal {
		_ = c.Delete(ctx, c.r.db.catalog, key, seen.ID, seen.ETag)
		seen = nil
	}
	if seen == nil || seen.ID != s.Drawer {
		var e catalogEntry
		etag, err := c.Read(ctx, c.r.db.catalog, key, s.Drawer, &e)
		if err != nil && !client.IsNotFound(err) || err == nil && e.NextSequence >= first {
			return
		}
		e.ETag = etag
		seen = &e
	}
	repaired := catalogEntry{
		ID: s.Drawer, PartitionKey: key, ContentType: cabinet.ContentType.String(),
		Ordinal: s.Ordinal, NextSequence: first,
	}
	_, _ = c.Put(ctx, c.r.db.catalog, key, s.Drawer, seen.ETag, repaired.replacementFor(seen))
}
