package push

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// readHead returns the head of a segment. It returns nil if the head was not found.
func (s *Store) readHead(ctx context.Context, c *client.Call, stream domain.StreamName, segment int) (*streamHead, error) {
	h := &streamHead{}
	etag, err := c.Read(ctx, s.streams, segmentKey(stream, segment), headID, h)
	if client.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h.segment, h.etag = segment, etag
	return h, nil
}

// lastHead returns the head of the last segment of a stream, or nil if the stream has no segment. Because
// heads are never removed, a binary search finds the last one.
func (s *Store) lastHead(ctx context.Context, c *client.Call, stream domain.StreamName) (*streamHead, error) {
	var last *streamHead
	missing := 0 // the lowest segment that is known to have no head
	for step := 1; missing == 0; step *= 2 {
		h, err := s.readHead(ctx, c, stream, step-1)
		if err != nil {
			return nil, err
		}
		if h == nil {
			missing = step - 1
			break
		}
		if last = h; !h.Sealed {
			return h, nil
		}
	}
	for last != nil && last.segment+1 < missing {
		middle := (last.segment + missing) / 2
		h, err := s.readHead(ctx, c, stream, middle)
		if err != nil {
			return nil, err
		}
		if h == nil {
			missing = middle
		} else {
			last = h
		}
	}
	return last, nil
}

// currentHead returns the head of the last segment of a stream. If the stream has no segment, it creates
// the first one.
func (s *Store) currentHead(ctx context.Context, c *client.Call, stream domain.StreamName) (*streamHead, error) {
	h, err := s.lastHead(ctx, c, stream)
	if err != nil || h != nil {
		return h, err
	}
	return s.openSegment(ctx, c, stream, &streamHead{segment: -1})
}

// openSegment creates the head of the segment that follows a sealed one.
func (s *Store) openSegment(ctx context.Context, c *client.Call, stream domain.StreamName, sealed *streamHead) (*streamHead, error) {
	h := s.newHead(stream, sealed)
	// A crash after this write leaves an empty head, which the next append uses. If the write is refused,
	// the head already exists: this call or another process has created it.
	etag, err := c.Put(ctx, s.streams, h.PartitionKey, headID, "", h)
	if client.IsRefused(err) {
		if h, err = s.readHead(ctx, c, stream, sealed.segment+1); h == nil && err == nil {
			err = client.ErrNotYetVisible
		}
		return h, err
	}
	h.etag = etag
	return h, err
}

// newHead returns a head for the segment that follows a sealed one, without storing it.
func (s *Store) newHead(stream domain.StreamName, sealed *streamHead) *streamHead {
	h := &streamHead{
		ID: headID, PartitionKey: segmentKey(stream, sealed.segment+1), WriteID: s.client.NewID(),
		Opened: toMicros(s.opts.Clock()), segment: sealed.segment + 1, Priorities: make(map[string]*streamTail),
		Sync: sealed.Sync, sync: sealed.sync, // shared, because a sealed head does not change
	}
	for name, t := range sealed.Priorities {
		h.Priorities[name] = &streamTail{First: t.nextNumber()}
	}
	return h
}

// readPage returns the page that contains a position. It returns nil if the page was not found.
func (s *Store) readPage(ctx context.Context, c *client.Call, stream domain.StreamName, at domain.Position) (*streamPage, error) {
	var p streamPage
	_, err := c.Read(ctx, s.streams, segmentKey(stream, at.Segment), pageID(at.Priority, at.Page), &p)
	if client.IsNotFound(err) {
		return nil, nil
	}
	return &p, err
}

// Read implements [repository.Streams].
func (s *Store) Read(ctx context.Context, stream domain.StreamName, from domain.Position, limit int) (repository.Entries, error) {
	if h := s.appenders.newestHead(stream); h != nil && h.segment == from.Segment {
		// The entries in the cached head are stored, so they are returned without a read.
		if t := h.tailOf(from.Priority); from.Number >= t.First && from.Number < t.nextNumber() {
			return s.toEntries(t.Runs, t.First, domain.Position{EntryID: from.EntryID, Segment: from.Segment, Page: t.Page}, limit), nil
		}
	}
	c := s.client.Begin("read stream")
	var found repository.Entries
	err := c.Retry(ctx, func() (err error) {
		found, err = s.readEntries(ctx, c, stream, from, limit)
		return err
	})
	return found, c.Outcome(fmt.Sprintf("read %s from %s", stream, from), err)
}

func (s *Store) readEntries(ctx context.Context, c *client.Call, stream domain.StreamName, at domain.Position, limit int) (repository.Entries, error) {
	for {
		h, err := s.readHead(ctx, c, stream, at.Segment)
		if err != nil || h == nil {
			return repository.Entries{Start: at}, err
		}
		t := h.tailOf(at.Priority)
		for at.Number < t.First {
			p, err := s.readPage(ctx, c, stream, at)
			if err != nil {
				return repository.Entries{}, err
			}
			if p == nil {
				if at, err = s.firstPosition(ctx, c, stream, h, at); err != nil {
					return repository.Entries{}, err
				}
				continue
			}
			if found := s.toEntries(p.Runs, p.First, at, limit); len(found.Entries) > 0 {
				return found, nil
			}
			at.Page++
			at.Number = max(at.Number, p.First+countOf(p.Runs))
		}
		at.Page = max(at.Page, t.Page)
		found := s.toEntries(t.Runs, t.First, at, limit)
		if len(found.Entries) > 0 || !h.Sealed {
			return found, nil
		}
		at = domain.Position{EntryID: domain.EntryID{Priority: at.Priority, Number: max(at.Number, t.nextNumber())}, Segment: at.Segment + 1}
	}
}

// toEntries returns up to limit entries of runs, beginning at the position from. first is the number of
// the first entry of runs. Entries whose retention has passed are skipped.
func (s *Store) toEntries(runs []appendRun, first int64, from domain.Position, limit int) repository.Entries {
	oldest := toMicros(s.opts.Clock().Add(-s.opts.Retention))
	found := repository.Entries{Start: from}
	at := from
	at.Number = first
	for i := range runs {
		var accepted domain.TraceContext
		for j := range runs[i].Entries {
			accepted = runs[i].Entries[j].acceptedAfter(accepted)
			switch {
			case at.Number < from.Number:
			case runs[i].Published < oldest && len(found.Entries) == 0:
				found.Start = at.Next()
			case len(found.Entries) == limit:
				return found
			default:
				found.Entries = append(found.Entries, runs[i].Entries[j].toEntry(at, runs[i].Published, accepted))
			}
			at = at.Next()
		}
	}
	return found
}

// firstPosition is called when the page of at was not found. It returns the first position of the next
// page that exists. If all pages were removed, it returns the position of the first entry in the head.
func (s *Store) firstPosition(ctx context.Context, c *client.Call, stream domain.StreamName, h *streamHead, at domain.Position) (domain.Position, error) {
	t := h.tailOf(at.Priority)
	// Pages are removed in the order in which they were written. So a binary search between a removed
	// page and an existing page finds the position.
	gone, found := at.Page, t.Page
	start := domain.Position{EntryID: domain.EntryID{Priority: at.Priority, Number: t.First}, Segment: at.Segment, Page: t.Page}
	for page := gone; ; page = (gone + found) / 2 {
		p, err := s.readPage(ctx, c, stream, domain.Position{EntryID: at.EntryID, Segment: at.Segment, Page: page})
		if err != nil {
			return at, err
		}
		if p != nil {
			found = page
			start.Number, start.Page = p.First, page
		} else {
			// A stale read of the page would skip its entries. So isGone confirms that the page was
			// removed.
			isGone, err := s.isGone(ctx, c, s.streams, h.PartitionKey, pageID(at.Priority, page))
			if err != nil {
				return at, err
			}
			if !isGone {
				return at, client.ErrNotYetVisible
			}
			gone = page
		}
		if gone+1 >= found {
			start.Number = max(start.Number, at.Number)
			return start, nil
		}
	}
}

// End implements [repository.Streams].
func (s *Store) End(ctx context.Context, stream domain.StreamName) (repository.StreamEnd, error) {
	c := s.client.Begin("read stream")
	h, err := s.lastHead(ctx, c, stream)
	return h.toStreamEnd(), c.Outcome("read the end of "+stream.String(), err)
}

// CurrentEnd implements [repository.Streams].
func (s *Store) CurrentEnd(ctx context.Context, stream domain.StreamName) (repository.StreamEnd, error) {
	c := s.client.Begin("read end of stream")
	var h *streamHead
	err := c.Retry(ctx, func() (err error) {
		h, err = s.lastHead(ctx, c, stream)
		if err == nil {
			err = s.confirmHead(ctx, c, stream, h)
		}
		return err
	})
	return h.toStreamEnd(), c.Outcome("read the current end of "+stream.String(), err)
}

// toStreamEnd returns the positions after the last entries of a stream. h is the last head of the stream,
// or nil if the stream has no head.
func (h *streamHead) toStreamEnd() (end repository.StreamEnd) {
	if h == nil {
		return end
	}
	end.Segment = h.segment
	for p := range domain.Priorities {
		if t := h.Priorities[strconv.Itoa(p)]; t != nil {
			end.Positions = append(end.Positions, domain.Position{EntryID: domain.EntryID{Priority: p, Number: t.nextNumber()}, Segment: h.segment, Page: t.Page})
		}
	}
	return end
}

// confirmHead returns ErrStale unless h was the last head of a stream when the call began. h is nil if
// the stream has no head. Where reads may be stale, it sends a patch that is refused unless the head has
// changed. The patch only sets a time to its stored value.
func (s *Store) confirmHead(ctx context.Context, c *client.Call, stream domain.StreamName, h *streamHead) error {
	if !s.account.ReadsMayBeStale() {
		return nil
	}
	next := 0 // number of the segment that must not exist if h is the last head
	if h != nil {
		ops := client.NewPatch(headDocument, "c.writeId != '"+h.WriteID+"'")
		ops.AppendSet("/opened", h.Opened)
		err := c.Patch(ctx, s.streams, h.PartitionKey, headID, ops, &struct{}{})
		switch {
		case err == nil:
			return client.ErrStale
		case client.StatusOf(err) != http.StatusPreconditionFailed:
			return err
		case !h.Sealed:
			return nil
		}
		next = h.segment + 1
	}
	isGone, err := s.isGone(ctx, c, s.streams, segmentKey(stream, next), headID)
	if err == nil && !isGone {
		err = client.ErrStale
	}
	return err
}
