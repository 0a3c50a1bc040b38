package cosmos

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/domain"
)

// pagesAtOnce is the number of pages read in one request: half a megabyte if the pages are full.
const pagesAtOnce = 8

// readDrawer reads and checks the pages of a drawer.
func (s *scan) readDrawer(ctx context.Context, d *drawerSeen) error {
	q := s.l.beginCall().Query(s.l.c.r.db.cabinets, d.id, "SELECT * FROM c WHERE c.until > @from ORDER BY c.until",
		azcosmos.QueryParameter{Name: "@from", Value: 0})
	slot := 0 // the first slot that was not read yet
	hashes := make([]uint64, 0, min(d.limit, maxRound))
	for !q.IsDone() && slot < d.paged {
		items, err := q.Next(ctx, pagesAtOnce)
		if err != nil {
			return err
		}
		for _, item := range items {
			var p drawerPage
			if err := q.Decode(item, &p); err != nil {
				return err
			}
			if p.Slot >= d.paged {
				break // this page belongs to an uncommitted Save, or to a flush that is not in the head yet
			}
			if slot, err = s.checkPage(d, &p, slot, &hashes); err != nil {
				return err
			}
		}
		q.UseCall(s.l.beginCall().Call) // each request has its own budget of retries
	}
	if slot < d.paged && !s.idsOnly {
		s.l.addFinding("H8", pageMissing, fmt.Sprintf("%s, slot %d", s.locateDrawer(d), slot), nil, "slots %d to %d are missing", slot, d.paged-1)
	}
	s.readTail(d, &hashes)
	if s.idsOnly {
		return nil
	}
	s.l.mu.Lock()
	s.l.events += int64(d.events)
	s.l.mu.Unlock()
	if d.events != d.limit {
		return nil
	}
	return s.checkFilters(ctx, d, hashes)
}

// readTail checks the events of d that are in the tail, and appends the hashes of their ids.
func (s *scan) readTail(d *drawerSeen, hashes *[]uint64) {
	if s.tail == nil || s.tail.drawer != d.id {
		return
	}
	ids := make([]domain.EventID, 0, len(s.tail.events))
	for i := range s.tail.events {
		e := &s.tail.events[i]
		ids = append(ids, e.ID)
		if !s.idsOnly {
			*hashes = append(*hashes, hashOf(e.ID))
			s.checkEvent(d, "the tail of "+s.locateDrawer(d), s.tail.paged+i, e.Sequence)
		}
	}
	s.l.ids.add(ids)
}

// checkPage checks a page and returns the slot after its events. It appends the hashes of the ids to
// hashes. Its only error is NewerFormat.
func (s *scan) checkPage(d *drawerSeen, p *drawerPage, slot int, hashes *[]uint64) (int, error) {
	where := fmt.Sprintf("page %s of %s", p.ID, s.locateDrawer(d))
	if !s.idsOnly {
		switch {
		case p.Slot > slot:
			s.l.addFinding("H8", pageMissing, fmt.Sprintf("%s, slot %d", s.locateDrawer(d), slot), nil, "slots %d to %d are missing", slot, p.Slot-1)
		case p.Slot < slot:
			s.l.addFinding("H8", pagesOverlap, where, nil, "the page begins at slot %d, but earlier pages have events up to slot %d", p.Slot, slot-1)
		}
	}
	ids := make([]domain.EventID, 0, min(max(p.Until-p.Slot, 0), p.maxEvents()))
	err := p.decodeEvents(s.cabinet, func(slot int, e *storedEvent) bool {
		if slot >= d.paged {
			return false
		}
		ids = append(ids, e.ID)
		if !s.idsOnly {
			*hashes = append(*hashes, hashOf(e.ID))
			s.checkEvent(d, where, slot, e.Sequence)
		}
		return true
	})
	s.l.ids.add(ids)
	if domain.KindOf(err) == domain.NewerFormat {
		return 0, err
	}
	if err != nil && !s.idsOnly {
		s.l.addFinding("H8", pageDamaged, where, nil, "%v", err)
	}
	return p.Until, nil
}

func (s *scan) checkEvent(d *drawerSeen, where string, slot int, sequence domain.Sequence) {
	d.events++
	if d.first == 0 {
		d.first = sequence
	}
	if sequence <= d.last || sequence > s.l.h.Watermark {
		s.l.addFinding("H3", sequenceWrong, where, nil, "number %d in slot %d follows number %d; the watermark is %d", sequence, slot, d.last, s.l.h.Watermark)
	}
	d.last = sequence
	waits := sequence > s.at.Sequence
	if waits {
		d.waiting++
		if s.bundle != nil && sequence <= s.bundle.Last {
			d.bundled++
		}
		if d.next == 0 {
			d.next = sequence
		}
	}
	if behind := d.ordinal > s.at.Ordinal || d.ordinal == s.at.Ordinal && slot >= s.at.Slot; behind != waits {
		s.l.addFinding("H7", gateWrong, s.locateDrawer(d), nil, "the position of the gate is drawer %d, slot %d, number %d, but slot %d has number %d",
			s.at.Ordinal, s.at.Slot, s.at.Sequence, slot, sequence)
	}
	if s.bundle != nil {
		s.compareWithBundle(d, slot, sequence)
	}
}

// compareWithBundle compares an event in a slot with the first and the last number of the open bundle.
func (s *scan) compareWithBundle(d *drawerSeen, slot int, sequence domain.Sequence) {
	first, last := s.bundle.Ranges[0], s.bundle.Ranges[len(s.bundle.Ranges)-1]
	if d.id == first.Drawer && slot == first.From && sequence != s.bundle.First ||
		d.id == last.Drawer && slot == last.To-1 && sequence != s.bundle.Last {
		s.l.addFinding("H6", bundleWrong, "bundle "+s.bundle.ID, nil, "the bundle states numbers %d to %d, but slot %d of drawer %d has number %d",
			s.bundle.First, s.bundle.Last, slot, d.ordinal, sequence)
	}
}

// findSuspects adds to places each slot of the drawer that has an event with a suspect id.
func (s *scan) findSuspects(ctx context.Context, d *drawerSeen, suspects map[uint64]bool, places map[domain.EventID][]string) error {
	q := s.l.beginCall().Query(s.l.c.r.db.cabinets, d.id, "SELECT * FROM c WHERE c.until > @from ORDER BY c.until",
		azcosmos.QueryParameter{Name: "@from", Value: 0})
	for !q.IsDone() {
		items, err := q.Next(ctx, pagesAtOnce)
		if err != nil {
			return err
		}
		for _, item := range items {
			var p drawerPage
			if err := q.Decode(item, &p); err != nil {
				return err
			}
			_ = p.decodeEvents(s.cabinet, func(slot int, e *storedEvent) bool { // the first pass has already reported damage
				if slot < d.paged && suspects[fingerprintOf(e.ID)] {
					places[e.ID] = append(places[e.ID], fmt.Sprintf("%s, slot %d", s.locateDrawer(d), slot))
				}
				return slot < d.paged
			})
		}
	}
	if s.tail != nil && s.tail.drawer == d.id {
		for i := range s.tail.events {
			if e := &s.tail.events[i]; suspects[fingerprintOf(e.ID)] {
				places[e.ID] = append(places[e.ID], fmt.Sprintf("%s, slot %d", s.locateDrawer(d), s.tail.paged+i))
			}
		}
	}
	return nil
}
