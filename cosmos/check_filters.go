package cosmos

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/messagehub/messagehub/cosmos/client"
)

// checkFilters compares the filters of a drawer with the hashes of its ids, which are in slot order.
func (s *scan) checkFilters(ctx context.Context, d *drawerSeen, hashes []uint64) error {
	s.checkRecipientFilter(d, hashes)
	if err := s.checkDrawerFilter(ctx, d, hashes); err != nil || !d.sealed {
		return err
	}
	return s.checkOlderFilter(ctx, d, hashes)
}

// checkDrawerFilter checks the stored filter of a drawer, if it exists.
func (s *scan) checkDrawerFilter(ctx context.Context, d *drawerSeen, hashes []uint64) error {
	c, at := s.l.beginCall(), drawerSegment(d.ordinal)
	var doc blockFilterDoc
	etag, err := c.Read(ctx, c.r.db.cabinets, cabinetKey(s.cabinet), at.documentID(), &doc)
	if client.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	set, err := decodeFingerprints(at, doc.Fingerprints)
	isWrong := err != nil || doc.Drawer != d.id || doc.Count < 0 || doc.Sealed && (!d.sealed || doc.Count < d.limit) ||
		!set.holdsAll(hashes[:min(doc.Count, len(hashes))])
	if !isWrong {
		return nil
	}
	s.l.addFinding("H2", filterWrong, "filter of "+s.locateDrawer(d), func(ctx context.Context, c *call) error {
		keys := make([]fingerprintKey, len(hashes))
		for i, hash := range hashes {
			keys[i] = at.keyOf(hash, 0)
		}
		right := &blockFilterDoc{
			ID: at.documentID(), PartitionKey: cabinetKey(s.cabinet), Until: at.endOrdinal(), Drawer: d.id, Count: d.paged, Sealed: d.sealed,
			Fingerprints: newFingerprintSet(at, keys).encode(), Document: doc.Document,
		}
		_, err := c.Put(ctx, c.r.db.cabinets, cabinetKey(s.cabinet), at.documentID(), etag, right)
		return err
	}, "the filter does not contain all events that it covers")
	return nil
}

// readFilter reads the filter of the recipient.
func (l *recipientCheck) readFilter(ctx context.Context) error {
	drawers, etag, _, err := l.beginCall().readRecipientFilter(ctx, l.recipient)
	if errors.Is(err, errFingerprints) {
		l.addFinding("H2", filterWrong, recipientFilterPlace, removeDocument(l.c.r.db.catalog, headKey(l.recipient), recipientFilterID, etag), "the filter cannot be decoded")
		return nil
	}
	l.filterETag, l.filtered = etag, make(map[string]*filteredDrawer, len(drawers))
	for i := range drawers {
		l.filtered[drawers[i].drawer] = &drawers[i]
	}
	return err
}

// recipientFilterPlace is the place of a finding in the filter of a recipient.
const recipientFilterPlace = "filter of the recipient"

// checkRecipientFilter checks the part of the recipient's filter that covers a drawer, if it exists.
func (s *scan) checkRecipientFilter(d *drawerSeen, hashes []uint64) {
	f := s.l.filtered[d.id]
	if f == nil || newFingerprintSet(drawerSegment(d.ordinal), f.keys).holdsAll(hashes[:min(f.count, len(hashes))]) {
		return
	}
	s.l.addFinding("H2", filterWrong, recipientFilterPlace, removeDocument(s.l.c.r.db.catalog, headKey(s.l.recipient), recipientFilterID, s.l.filterETag),
		"the filter does not contain all events of %s that it covers", s.locateDrawer(d))
}

// holdsAll reports whether f, the set of a drawer, holds all events with the hashes.
func (f *fingerprintSet) holdsAll(hashes []uint64) bool {
	return !slices.ContainsFunc(hashes, func(hash uint64) bool { return len(f.appendOrdinals(hash, nil)) == 0 })
}

// checkOlderFilter checks the filter that an older version stored for a sealed drawer, if it exists.
func (s *scan) checkOlderFilter(ctx context.Context, d *drawerSeen, hashes []uint64) error {
	c, want := s.l.beginCall(), newFilter(d.limit)
	var doc filterDoc
	etag, err := c.Read(ctx, c.r.db.cabinets, d.id, filterID, &doc)
	if client.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, hash := range hashes {
		want.addHash(hash)
	}
	if doc.Count != d.limit || !bytes.Equal(doc.Filter, want) {
		s.l.addFinding("H2", filterWrong, "older filter of "+s.locateDrawer(d), func(ctx context.Context, c *call) error {
			right := &filterDoc{ID: filterID, PartitionKey: d.id, Count: d.limit, Filter: want, Document: doc.Document}
			_, err := c.Put(ctx, c.r.db.cabinets, d.id, filterID, etag, right)
			return err
		}, "the filter does not match the events of the drawer")
	}
	return nil
}
