package inspect

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	// nearEntries is the maximum distance from the cursor at which a query searches for an entry. The search begins
	// at or before the page of the cursor, so this limits how much of the stream the store must read.
	nearEntries = 1000
	// maxWaitingReads limits the waiting entries that are read for one page of a list. The last read may exceed the
	// limit.
	maxWaitingReads = 1000
	// nearPages is about how many pages before the cursor a search for an entry begins.
	nearPages = 64
)

// searchStart returns the position at which to search for an entry that the cursor has passed. The entry's page is not
// stored, but is not later than the cursor's page.
func (n *snapshot) searchStart(e domain.EntryID) domain.Position {
	at := n.standing.Position(e.Priority)
	at.EntryID = e
	if _, isData := n.stream.DataActor(); isData {
		at.Page = int(e.Number) + 1 // in a data stream, the page of a passed entry is its number plus 1
	}
	return at
}

// isNear reports whether an entry is close enough to the cursor to be read.
func (n *snapshot) isNear(e domain.EntryID) bool {
	distance := e.Number - n.standing.Position(e.Priority).Number
	return -nearEntries <= distance && distance <= nearEntries
}

// readEntry returns the entry at a position, whose page may be too early. It returns nil if the entry was removed or is
// not found.
func (s *Service) readEntry(ctx context.Context, n *snapshot, at domain.Position) (*repository.Entry, error) {
	found, err := s.ports.Streams.Read(ctx, n.stream, at, 1)
	if err != nil || len(found.Entries) == 0 || found.Entries[0].Position.EntryID != at.EntryID {
		return nil, err
	}
	return &found.Entries[0], nil
}

// searchEntry returns an entry that the cursor has passed. It returns nil if the entry was removed or is too far from
// the cursor.
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

// An entryReader reads the entries for a page of deliveries. It reads the stream at most maxReads times.
type entryReader struct {
	service *Service
	n       *snapshot
	known   map[domain.EntryID]*repository.Entry
	reads   int
}

// maxReads limits the reads of a stream for one page of a list.
const maxReads = 16

// readAhead is how many entries one read of a stream returns at most.
const readAhead = 100

func (s *Service) newEntryReader(n *snapshot) *entryReader {
	return &entryReader{service: s, n: n, known: make(map[domain.EntryID]*repository.Entry)}
}

// addEvent sets the event of a delivery. If the entry must still be read and maxReads is reached, it does nothing.
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
