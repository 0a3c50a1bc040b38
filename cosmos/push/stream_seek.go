package push

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Seek implements [repository.Streams].
func (s *Store) Seek(ctx context.Context, stream domain.StreamName, priority int, isBefore func(number int64, published time.Time) bool) (domain.Position, error) {
	c := s.client.Begin("seek stream")
	at := domain.Position{EntryID: domain.EntryID{Priority: priority}}
	err := c.Retry(ctx, func() error {
		h, err := s.lastHead(ctx, c, stream)
		if err != nil || h == nil {
			return err
		}
		for { // find the last segment in which isBefore is true for the first entry
			isLater := false
			if at, isLater, err = s.seekSegment(ctx, c, stream, h, priority, isBefore); err != nil || !isLater || h.segment == 0 {
				return err
			}
			before := h.segment - 1
			if h, err = s.readHead(ctx, c, stream, before); err == nil && h == nil {
				err = client.ErrNotYetVisible // heads are never removed, so the read was stale
			}
			if err != nil {
				return err
			}
		}
	})
	return at, c.Outcome(fmt.Sprintf("seek in %s", stream), err)
}

// seekSegment returns the first position of the last page in which isBefore is true for the first entry. If
// isBefore is false for all entries of the segment, seekSegment returns the first position of the segment,
// and isLater is true.
func (s *Store) seekSegment(ctx context.Context, c *client.Call, stream domain.StreamName, h *streamHead, priority int, isBefore func(int64, time.Time) bool) (at domain.Position, isLater bool, err error) {
	t := h.tailOf(priority)
	start := func(number int64, page int) domain.Position {
		return domain.Position{EntryID: domain.EntryID{Priority: priority, Number: number}, Segment: h.segment, Page: page}
	}
	if len(t.Runs) == 0 && t.Page == 0 {
		return start(t.First, 0), t.First > 0, nil // the segment has no entry of the priority
	}
	if len(t.Runs) > 0 && isBefore(t.First, fromMicros(t.Runs[0].Published)) {
		return start(t.First, t.Page), false, nil
	}
	at = start(0, 0)
	before, after := -1, t.Page
	for before+1 < after {
		page := (before + after) / 2
		p, err := s.readPage(ctx, c, stream, start(0, page))
		switch {
		case err != nil:
			return at, false, err
		case p == nil: // the page has expired or is not visible yet; Read distinguishes these cases
			before, at = page, start(0, page)
		case isBefore(p.First, fromMicros(p.Runs[0].Published)):
			before, at = page, start(p.First, page)
		default:
			after = page
		}
	}
	return at, before < 0, nil
}
