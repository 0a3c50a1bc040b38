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

// A Peek reads the gates and the head concurrently. If a bundle is open, it returns that. Otherwise the
// candidates are the cabinets of which the head has more events than the gate has acknowledged. Without
// a candidate there is no data, after two requests; a single candidate is read at once. Of several, the
// head or the entries in the catalog indicate the one with the smallest number, and its first event,
// read from the position of the gate, confirms or corrects that. Add then opens the bundle in one batch
// with the gate.
//
// The seals and the repaired entries that a Peek writes before that batch are valid without it.

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
	run.head, run.asked = h, gates
	return repository.Next{Run: run, Waiting: waiting}, nil
}

// openBundle returns the open bundle of g. Where reads may be stale, it proves that the bundle is open.
func (c *call) openBundle(ctx context.Context, g *gate, asked map[domain.Group]*gate, h *head) (repository.Next, error) {
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
	run.head, run.asked = h, asked
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

// findOpenBundle returns the bundle if one of the gates has it open.
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

// runOf returns the run of an open bundle. A part of it may be in the tail of h. Any head that knows
// the slots of the bundle tells where they are. A head that does not is older than the bundle.
func (c *call) runOf(b *domain.Bundle, doc *bundleDoc, h *head) (*eventRange, error) {
	r := &eventRange{call: c, group: b.Group, cabinet: b.Cabinet, open: doc}
	last := h.Cabinets[doc.Cabinet]
	for _, s := range doc.Ranges {
		if s.Ordinal > last.Ordinal || s.Drawer == last.Drawer && s.To > last.Fill {
			return nil, client.ErrNotYetVisible
		}
		r.parts = append(r.parts, stretch{slotRange: s})
	}
	var err error
	if r.tail, err = last.decodeTail(b.Cabinet); err != nil {
		return nil, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(b.Cabinet), err)
	}
	return r, nil
}

// A peekCandidate is a cabinet with visible events that are not acknowledged.
type peekCandidate struct {
	group   domain.Group
	cabinet domain.CabinetKey
	last    received
	head    *head
	floor   int // the lowest retained ordinal
	gate    *gate
	at      position

	entry *catalogEntry // the smallest one in the catalog, or nil
	run   *eventRange   // set once its first event has been read
	first domain.Sequence
	lost  error // why its first event cannot be read, nil if that is not known
}

// findCandidates returns the cabinets of which the head has events after the gates' positions, and the
// number of these events.
func (c *call) findCandidates(recipient domain.ActorID, gates map[domain.Group]*gate, h *head) ([]*peekCandidate, int64, error) {
	var found []*peekCandidate
	var waiting int64
	for name, last := range h.Cabinets {
		cabinet, err := cabinetOf(recipient, name)
		if err != nil {
			return nil, 0, err
		}
		group, err := c.r.opts.Groups.Of(cabinet.Origin)
		if err != nil {
			return nil, 0, domain.Errorf(domain.Damaged, "actor %s has events of an origin that this configuration does not name: %w", recipient, err)
		}
		g, asked := gates[group]
		if !asked {
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

// chooseCandidate returns the run of the candidate whose first event has the smallest sequence number.
// The head or the catalog indicates that candidate; the cabinet itself decides. An entry that is
// missing or too low is repaired.
func (c *call) chooseCandidate(ctx context.Context, candidates []*peekCandidate) (*eventRange, error) {
	if c.r.opts.Ordering == domain.ByRecipient {
		return c.chooseInOrder(ctx, candidates)
	}
	if len(candidates) == 1 {
		cand := candidates[0]
		if err := cand.unlessLost(cand.readFirst(ctx, c)); err != nil { // it must be read, whatever its entry states
			return nil, err
		}
		return cand.run, cand.lost
	}
	var others []*peekCandidate // whose first events the head does not state
	for _, cand := range candidates {
		if err := cand.lookInHead(); err != nil {
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
		if cand.believesEntry() {
			cand.first = cand.entry.NextSequence
			continue
		}
		g.Go(func() error { return cand.unlessLost(cand.readAndRepair(gctx, c)) })
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
		if err := cand.unlessLost(cand.readAndRepair(ctx, c)); err != nil {
			return nil, err
		}
	}
}

// isLost reports whether the candidate's first event is known to be lost.
func (cand *peekCandidate) isLost() bool { return cand.lost != nil }

// unlessLost records in cand an error which says that the candidate's first event is lost, and returns
// any other error.
func (cand *peekCandidate) unlessLost(err error) error {
	if isLost(err) {
		cand.lost = err
		return nil
	}
	return err
}

// isInTail reports whether the first event after the position at is in the tail: all events in pages
// are acknowledged. Then no event waits in earlier drawers.
func isInTail(last received, at position) bool {
	return len(last.Tail) > 0 && at.Total >= last.Total-int64(last.tailLen())
}

// isInTail reports whether the candidate's first event is in the tail.
func (cand *peekCandidate) isInTail() bool { return isInTail(cand.last, cand.at) }

// lookInHead sets first if the head states it.
func (cand *peekCandidate) lookInHead() (err error) {
	cand.first = cand.last.frontBehind(cand.at)
	if cand.isInTail() {
		cand.first, err = cand.firstOfTail()
	}
	return err
}

// firstOfTail returns the number of the first waiting event in the tail.
func (cand *peekCandidate) firstOfTail() (domain.Sequence, error) {
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

// believesEntry reports whether the candidate's entry may determine its first event. Only the entry of
// the drawer of the gate's position may: a flush writes no entries, so the entry of a later drawer does
// not prove that no event waits before it.
func (cand *peekCandidate) believesEntry() bool {
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

// repairEntry makes the candidate's entry point at its first event, which has been read. If the head
// states that event, no entry is needed.
func (cand *peekCandidate) repairEntry(ctx context.Context, c *call) {
	if cand.isInTail() || cand.last.frontBehind(cand.at) > 0 {
		return
	}
	if cand.entry == nil || cand.entry.NextSequence < cand.first {
		c.repairEntry(ctx, cand.cabinet, cand.entry, cand.run.parts[0].slotRange, cand.first)
	}
}

// repairEntry makes the catalog point at the first event of a cabinet, which is in drawer s. Every write
// is conditional on the entry that was read. If one is refused, another writer has changed the entry,
// and the next Peek reads it again.
func (c *call) repairEntry(ctx context.Context, cabinet domain.CabinetKey, seen *catalogEntry, s slotRange, first domain.Sequence) {
	c.r.metrics.repairs.WithLabelValues(pointerRepair).Inc()
	key := catalogKey(cabinet.Recipient, cabinet.Origin)
	// A crash after the deletion leaves the cabinet without an entry, or with that of a later drawer.
	// The next Peek reads the cabinet itself and restores the entry.
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
		seen = &catalogEntry{ETag: etag, Document: e.Document}
	}
	repaired := &catalogEntry{
		ID: s.Drawer, PartitionKey: key, ContentType: cabinet.ContentType.String(),
		Ordinal: s.Ordinal, NextSequence: first, Document: seen.Document,
	}
	_, _ = c.Put(ctx, c.r.db.catalog, key, s.Drawer, seen.ETag, repaired)
}
