package cosmos

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"net/http"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A flush moves the events of a tail to a page. Any writer may flush a tail at any time: its events are
// already visible and immutable, so the flush needs no intent. It creates the page, raises the count of
// the drawer, and then replaces the head; this last step is part of another write of the head. Two
// concurrent flushes of tails of different lengths use the page that was created first.
//
// A flush begins only with the Save that needs it. If flushes began earlier, one Save in 24 would not wait
// for the two requests. Callers would hardly notice the difference. These are the delays of Saves in ms,
// with requests of 5 to 7 ms, and in parentheses the delays with tails that are never flushed
// (TestFlush_DelaysTheSlowestSavesByItsTwoRequests):
//
//	events/s   p50           p95           p99
//	1          6.1 (6.0)     18.3 (7.0)    31.2 (31.3)
//	10         6.3 (6.2)     30.5 (30.4)   36.0 (35.3)
//	30         12.6 (11.0)   35.1 (33.7)   42.4 (36.7)
//	100        24.1 (21.3)   42.3 (35.2)   47.7 (36.6)
//
// An earlier flush would need another goroutine for each recipient that saves, and either pages of three
// quarters the size or larger heads.

// flushTail writes the page and the count for the tail of a cabinet of h, and returns the head that the
// caller must write. It fails with client.ErrStale if h is older than the page.
func (c *call) flushTail(ctx context.Context, recipient domain.ActorID, h *head, name cabinetName) (*head, error) {
	cabinet, err := cabinetOf(recipient, name)
	if err != nil {
		return nil, err
	}
	last := h.Cabinets[name]
	t, err := last.decodeTail(cabinet)
	if err != nil {
		return nil, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cabinet), err)
	}
	id := c.r.client.NewID()
	until, err := c.createFlushedPage(ctx, cabinet, t, id)
	if err != nil {
		return nil, err
	}
	if err := c.countFlushed(ctx, cabinet, last.Ordinal, t, until, id); err != nil {
		return nil, err
	}
	return h.withFlushed(name, t, until), nil
}

// flushAll flushes every tail of a recipient, so that a node that does not know tails can serve it.
func (c *call) flushAll(ctx context.Context, recipient domain.ActorID) error {
	h, err := c.readHead(ctx, recipient)
	if err != nil || !h.hasTail() {
		return err
	}
	next := h
	for next.hasTail() {
		if next, err = c.flushTail(ctx, recipient, next, next.longestTail()); err != nil {
			return err
		}
	}
	next.setWriteID(c.r.client.NewID())
	_, err = c.Put(ctx, c.r.db.catalog, h.PartitionKey, headID, h.etag, next)
	if client.IsRefused(err) {
		err = client.ErrStale // if an earlier attempt was applied, the next one finds no tail
	}
	return err
}

// createFlushedPage creates the page of a tail, and returns the slot after the page. If another flush has
// already created the page, it returns the slot after that page.
func (c *call) createFlushedPage(ctx context.Context, cabinet domain.CabinetKey, t *tail, id string) (until int, err error) {
	p := t.flushedPage(id)
	// A crash after this write leaves a page that equals a prefix of the tail. No reader uses the page
	// before the head states that it exists. The next flush uses the page instead of creating one.
	_, err = c.Put(ctx, c.r.db.cabinets, t.drawer, p.ID, "", p)
	if err == nil {
		return p.Until, nil
	}
	if !client.IsRefused(err) {
		return 0, err
	}
	var made drawerPage
	if _, err = c.Read(ctx, c.r.db.cabinets, t.drawer, p.ID, &made); err != nil {
		if client.IsNotFound(err) {
			err = client.ErrNotYetVisible
		}
		return 0, err
	}
	if made.Until > p.Until {
		return 0, client.ErrStale // the head with this tail is outdated
	}
	same := true
	err = made.decodeEvents(cabinet, func(slot int, e *storedEvent) bool {
		of := &t.slotEvents(slot, slot+1)[0]
		same = e.ID == of.ID && e.Sequence == of.Sequence && e.digest == of.digest
		return same
	})
	if err == nil && (!same || made.Slot != t.paged || made.Until <= made.Slot) {
		err = errPage
	}
	if err != nil {
		return 0, domain.Errorf(domain.Damaged, "page %s of drawer %s is not that of the events from slot %d on: %w", p.ID, t.drawer, t.paged, err)
	}
	return made.Until, nil
}

// flushedPage returns the page for the events of t.
func (t *tail) flushedPage(id string) *drawerPage {
	first := &t.events[0]
	p := &drawerPage{
		ID: pageID(t.paged), PartitionKey: t.drawer, Intent: id, Slot: t.paged, Until: t.paged + len(t.events),
		FirstSequence: first.Sequence, Saved: millisOf(first.Saved), Saves: encodeSaves(t.saves, t.paged),
	}
	data := appendEvents(make([]byte, 0, 64*len(t.events)+64), t.events, p.firstEventBase())
	p.Events = binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
	p.Sum = p.computeChecksum()
	return p
}

// countFlushed raises the count of a drawer to the slot until, and its weight by the flushed events of t.
// For the first page, it creates the document of the drawer.
func (c *call) countFlushed(ctx context.Context, cabinet domain.CabinetKey, ordinal int, t *tail, until int, id string) error {
	key := cabinetKey(cabinet)
	weight := weightOf(t.slotEvents(t.paged, until))
	var err error
	// A crash after either write leaves a count above the number of paged events in the head. Readers
	// use the number in the head; the next flush finds the count that it would write.
	if t.paged == 0 {
		_, err = c.Put(ctx, c.r.db.cabinets, key, t.drawer, "", &drawer{
			ID: t.drawer, PartitionKey: key, Ordinal: ordinal, FirstSequence: t.events[0].Sequence,
			Count: until, Weight: weight, WriteID: id,
		})
	} else {
		err = c.Patch(ctx, c.r.db.cabinets, key, t.drawer, countUp(&drawerPart{Slot: t.paged, Count: until - t.paged}, weight, id), &drawer{})
	}
	if !client.IsRefused(err) && client.StatusOf(err) != http.StatusNotFound {
		return err
	}
	// The write was refused: an earlier attempt or another flush has already raised the count, or the
	// head is outdated.
	var d drawer
	_, err = c.Read(ctx, c.r.db.cabinets, key, t.drawer, &d)
	switch {
	case err == nil && d.Count < t.paged && !d.Sealed:
		// No stored head has more paged slots than its drawer counts. So the store has lost a count,
		// unless this read is stale: then the patch is refused.
		err = c.Patch(ctx, c.r.db.cabinets, key, t.drawer, countUp(&drawerPart{Slot: d.Count, Count: until - d.Count}, weight, id), &drawer{})
		if client.IsRefused(err) {
			err = client.ErrStale
		}
	case client.IsNotFound(err), err == nil && d.Count < until:
		return client.ErrStale
	}
	return err
}
