package cosmos

import (
	"context"
	"fmt"

	"github.com/messagehub/messagehub/cosmos/client"
)

// withoutTwins returns one drawer for each ordinal up to that of the head, and reports other drawers with
// the same ordinal. It prefers the drawer that the head names, then the first drawer with events.
func (s *scan) withoutTwins(key string, found []*drawer) []*drawer {
	kept := make([]*drawer, 0, len(found))
	for _, d := range found {
		n := len(kept) - 1
		if n < 0 || kept[n].Ordinal != d.Ordinal || d.Ordinal > s.last.Ordinal {
			kept = append(kept, d)
			continue
		}
		twin := d
		if kept[n].ID != s.last.Drawer && (d.ID == s.last.Drawer || kept[n].Count == 0) {
			kept[n], twin = d, kept[n]
		}
		s.reportTwin(key, twin, kept[n])
	}
	return kept
}

// reportTwin reports a drawer d with the same ordinal as another drawer. Two such drawers make every Peek
// fail. If d is empty, a repair sets its ordinal to 0, which no reader queries. The document remains until
// a sweep removes it, because it may be the seal of a rollback.
func (s *scan) reportTwin(key string, d, other *drawer) {
	where := s.locateDrawer(&drawerSeen{id: d.ID, ordinal: d.Ordinal})
	if d.Count > 0 || s.l.isIntended(d.ID) {
		s.l.addFinding("H8", drawerTwice, where, nil,
			"drawer %s has the same ordinal, so every Peek fails at these drawers: an older version has continued with a head that had lost writes; "+
				"restore a backup of all containers of one moment, or export the pages of the drawer with the smaller _ts, remove its document from container cabinets, "+
				"and have the senders send its events again", other.ID)
		return
	}
	s.l.addFinding("H8", drawerTwice, where, func(ctx context.Context, c *call) error {
		// A sweep removes the drawer after this write, even if the process crashes.
		ops := client.NewPatch(drawerDocument, "c.count = 0", fmt.Sprintf("c.ordinal = %d", d.Ordinal))
		ops.AppendSet("/sealed", true)
		ops.AppendSet("/ordinal", 0)
		return c.Patch(ctx, c.r.db.cabinets, key, d.ID, ops, &drawer{})
	}, "drawer %s has the same ordinal, so every Peek fails at these drawers; this drawer is empty, and a check with repair gives it another ordinal", other.ID)
}

// reportBeyondHead reports a drawer with an ordinal above that of the head, unless the drawer belongs to
// the Save in flight.
func (s *scan) reportBeyondHead(d *drawer, seen *drawerSeen) {
	switch {
	case s.l.isIntended(d.ID):
	case d.isAhead(s.last):
		s.reportAhead(seen, "the head states drawers only up to %d; %s", s.last.Ordinal, whatToDoAhead)
	default:
		s.l.addFinding("H8", drawerBeyond, s.locateDrawer(seen), nil, "the head states drawers only up to %d", s.last.Ordinal)
	}
}

// reportAhead reports a drawer whose events are missing in the head, because the store has lost writes of
// the head.
func (s *scan) reportAhead(seen *drawerSeen, format string, args ...any) {
	s.l.addFinding("H1", drawerAhead, s.locateDrawer(seen), func(ctx context.Context, c *call) error {
		return c.raiseHead(ctx, s.l.recipient)
	}, format, args...)
}

// whatToDoAhead is the advice in a finding about a drawer ahead of its head.
const whatToDoAhead = "the store has lost writes of the head, by a failover or because a part of it was restored: " +
	"the next Save or a check with repair continues above the drawer, and its events are delivered"
