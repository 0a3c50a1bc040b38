package inspect

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	// nearEntries is the maximum distance between the position of the cursor and an entry that
	// a query searches for or lists. The store reads a stream from the page of the cursor
	// onward, so this limits the pages that a query makes the store read.
	nearEntries = 1000
	// maxWaitingReads is the maximum number of waiting entries that are read for one page of a
	// list. The last read may exceed it.
	maxWaitingReads = 1000
	// nearPages limits the search for an entry to about this many pages before the cursor.
	nearPages = 64
)

// searchStart returns the position at which the search for an entry begins. The cursor has passed
// the entry, and the page of the entry is not stored: it is the page of the cursor or an earlier page.
func (n *snapshot) searchStart(e domain.EntryID) domain.Position {
	at := n.standing.Position(e.Priority)
	at.EntryID = e
	if _, isData := n.stream.DataActor(); isData {
		at.Page = int(e.Number) + 1 // in a data stream, the page of an entry that the cursor has passed is the entry's number plus 1
	}
	return at
}

// isNear reports whether an entry is close enough to the position of the cursor to be read.
func (n *snapshot) isNear(e domain.EntryID) bool {
	distance := e.Number - n.standing.Position(e.Priority).Number
	return -nearEntries <= distance && distance <= nearEntries
}

// readEntry returns the entry with the id of at. The page of at may be the page of an earlier
// entry. The result is nil if the entry was removed or is not found.
func (s *Service) readEntry(ctx context.Context, n *snapshot, at domain.Position) (*repository.Entry, error) {
	found, err := s.ports.Streams.Read(ctx, n.stream, at, 1)
	if err != nil || len(found.Entries) == 0 || found.Entries[0].Position.EntryID != at.EntryID {
		return nil, err
	}
	return &found.Entries[0], nil
}

// searchEntry returns an entry that the cursor has passed and whose position is not stored. The
// result is nil if the entry was removed or is not near.
func (s *Service) searchEntry(ctx context.Context, n *snapshot, e domain.EntryID) (*repository.Entry, error) {
	if !n.isNear(e) {
		return nil, nil //nolint:nilnil // the entry is not found
	}
	at := n.searchStart(e)
	_, isData := n.stream.DataActor()
	first := at.Page
	for back := 1; ; back *= 2 {
		found, err := s.readEntry(ctx, n, at)
		if err != nil || found != nil || isData || at.Page == 0 || back > nearPages {
			return found, err
		}
		at.Page = max(first-back, 0)
	}
}

// An entryReader reads the entries of deliveries, with at most maxReads reads of the stream.
type entryReader struct {
	service *Service
	n       *snapshot
	known   map[domain.EntryID]*repository.Entry
	reads   int
}

// maxReads is the maximum number of reads of a stream for the events on one page of a list.
const maxReads = 16

// readAhead is the maximum number of entries in one read of a stream.
const readAhead = 100

func (s *Service) newEntryReader(n *snapshot) *entryReader {
	return &entryReader{service: s, n: n, known: make(map[domain.EntryID]*repository.Entry)}
}

// addEvent adds the event to a delivery. If the entry is not read yet and maxReads is reached, it
// does nothing.
func (r *entryReader) addEvent(ctx context.Context, d *Delivery) error {
	e := r.known[d.ID.Entry]
	if e == nil && r.reads < maxReads {
		r.reads++
		if err := r.read(ctx, d.position); err != nil {
			return err
		}
		e = r.known[d.ID.Entry]
	}
	if e != nil {
		d.addEvent(e)
	}
	return nil
}

func (r *entryReader) read(ctx context.Context, at domain.Position) error {
	found, err := r.service.ports.Streams.Read(ctx, r.n.stream, at, readAhead)
	for i := range found.Entries {
		r.known[found.Entries[i].Position.EntryID] = &found.Entries[i]
	}
	return err
}
