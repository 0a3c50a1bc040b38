package cosmos

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The spans of Saves are stored in pages and tails, with the saved events, and are not indexed. So a
// search for a trace reads all pages of a mailbox that have spans, and all its bundles.

// spanAt returns the span of the Save that filled a slot, or zero if that span is not stored.
func spanAt(runs []saveRun, slot int) domain.TraceContext {
	for _, r := range runs {
		if r.from <= slot && slot < r.until {
			return r.span
		}
	}
	return domain.TraceContext{}
}

// findTrace searches the mailbox with head h for the trace q.Trace, and stores the events and bundles that
// it finds in m.
func (c *call) findTrace(ctx context.Context, q *repository.EventQuery, h *head, m *mailboxSearch) error {
	m.saves, m.bundles, m.unread = nil, nil, nil
	for _, name := range slices.Sorted(maps.Keys(h.Cabinets)) {
		if !isOfOrigin(m.recipient, name, q.Origin) {
			continue
		}
		if err := c.findTraceInCabinet(ctx, q.Trace, name, h, m); err != nil {
			return err
		}
	}
	docs, err := client.All[foundBundleDoc](ctx, c.Query(c.r.db.bundles, m.recipient.String(),
		"SELECT * FROM c WHERE c.kind = @kind AND IS_DEFINED(c.peeked)", azcosmos.QueryParameter{Name: "@kind", Value: bundleKind}))
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if doc.Peeked.decodeSpan().TraceID != q.Trace || !isOfOrigin(m.recipient, doc.Cabinet, q.Origin) {
			continue
		}
		found, err := doc.foundBundle(false)
		if err != nil {
			return err
		}
		m.bundles = append(m.bundles, found)
	}
	if !slices.ContainsFunc(docs, func(doc *foundBundleDoc) bool { return doc.State == stateOpen }) || len(m.bundles) == 0 {
		return nil
	}
	gates := make(map[domain.Group]*gate)
	if err := c.readGates(ctx, m.recipient, c.r.opts.Groups.All(), gates); err != nil {
		return err
	}
	for i := range m.bundles {
		m.bundles[i].Frozen = anyFrozen(gates)
	}
	return nil
}

// findTraceInCabinet adds to m the events of a cabinet that were saved under the trace.
func (c *call) findTraceInCabinet(ctx context.Context, trace domain.TraceID, name cabinetName, h *head, m *mailboxSearch) error {
	last := h.Cabinets[name]
	cabinet, err := cabinetOf(m.recipient, name)
	if err != nil {
		return err
	}
	group, err := c.r.opts.Groups.GroupOf(cabinet.Origin)
	if err != nil {
		return domain.Errorf(domain.Damaged, "the configuration does not name origin %s: %w", cabinet.Origin, err)
	}
	next := 0 // slot after the last added event, counted over all drawers of the cabinet
	add := func(place int, span domain.TraceContext, e *repository.StoredEvent) {
		n := len(m.saves)
		if n == 0 || next != place || m.saves[n-1].Span != span || m.saves[n-1].Cabinet != cabinet {
			m.saves = append(m.saves, repository.FoundSave{Span: span, Cabinet: cabinet, Group: group})
			n++
		}
		m.saves[n-1].Add(e)
		next = place + 1
	}
	newest, err := last.decodeTail(cabinet)
	if err != nil {
		return domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cabinet), err)
	}
	before := 0
	if !last.isPageless() || max(h.cabinetFloor(name), 1) < last.Ordinal {
		extents, err := c.readExtents(ctx, cabinet, last, max(h.cabinetFloor(name), 1), 0)
		if err != nil {
			return err
		}
		for _, e := range extents {
			limit := e.limit
			if !e.sealed {
				limit = min(limit, last.inPages())
			}
			if err := c.findTraceInDrawer(ctx, trace, cabinet, e.drawer, limit, m, func(slot int, span domain.TraceContext, found *repository.StoredEvent) {
				add(before+slot, span, found)
			}); err != nil {
				return err
			}
			before += limit
		}
	}
	if newest == nil {
		return nil
	}
	for i := range newest.events {
		if span := spanAt(newest.saves, newest.paged+i); span.TraceID == trace {
			add(before+i, span, &newest.events[i].StoredEvent)
		}
	}
	return nil
}

// findTraceInDrawer calls add for the events in the slots below limit that were saved under a trace. If a page
// cannot be decoded, it adds the page to m.unread.
func (c *call) findTraceInDrawer(ctx context.Context, trace domain.TraceID, cabinet domain.CabinetKey, drawer string, limit int, m *mailboxSearch,
	add func(slot int, span domain.TraceContext, e *repository.StoredEvent),
) error {
	if limit == 0 {
		return nil
	}
	q := c.Query(c.r.db.cabinets, drawer, "SELECT * FROM c WHERE c.until > @from AND IS_DEFINED(c.saves) ORDER BY c.until", azcosmos.QueryParameter{Name: "@from", Value: 0})
	done := 0 // number of slots read so far
	for !q.IsDone() {
		items, err := q.Next(ctx, pagesOfIndex)
		if err != nil {
			return err
		}
		for _, item := range items {
			p := &drawerPage{}
			if err := q.Decode(item, p); err != nil {
				m.unread = append(m.unread, err.Error())
				continue
			}
			runs := p.saveRuns()
			if !slices.ContainsFunc(runs, func(r saveRun) bool { return r.span.TraceID == trace }) {
				continue
			}
			err := p.decodeEvents(cabinet, func(slot int, e *storedEvent) bool {
				if span := spanAt(runs, slot); slot >= done && slot < limit && span.TraceID == trace {
					add(slot, span, &e.StoredEvent)
				}
				return true
			})
			if err != nil {
				m.unread = append(m.unread, fmt.Sprintf("page %s of drawer %s: %v", p.ID, drawer, err))
			}
			done = max(done, min(p.Until, limit))
		}
	}
	return nil
}
