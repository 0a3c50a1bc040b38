package inspect

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	// nearEntries is the limit for the distance between a known position and an entry that is
	// looked for, and for the listed entries of a priority that were not taken. A stream is
	// read from a page onward, so this limits what a query can make the store read.
	nearEntries = 1000
	// maxLooked is the limit for the entries that one page of a list reads among those that
	// were not taken. The last read may exceed it.
	maxLooked = 1000
	// nearPages is the number of pages before a known position in which an entry is looked for.
	nearPages = 64
)

// nearTaken returns where to look for an entry that was taken and whose position is not stored:
// the page of the cursor, or an earlier one.
func (n *snapshot) nearTaken(e domain.EntryID) domain.Position {
	at := n.standing.Position(e.Priority)
	at.EntryID = e
	if _, isData := n.stream.DataActor(); isData {
		at.Page = int(e.Number) + 1 // of an entry that was taken
	}
	return at
}

// isNear reports whether an entry is close enough to the position of the cursor to look for it.
func (n *snapshot) isNear(e domain.EntryID) bool {
	distance := e.Number - n.standing.Position(e.Priority).Number
	return -nearEntries <= distance && distance <= nearEntries
}

// readEntry returns the entry at a position, or after it if the position is only approximate.
// It returns nil if the entry was removed or not found.
func (s *Service) readEntry(ctx context.Context, n *snapshot, at domain.Position) (*repository.Entry, error) {
	found, err := s.ports.Streams.Read(ctx, n.stream, at, 1)
	if err != nil || len(found.Entries) == 0 || found.Entries[0].Position.EntryID != at.EntryID {
		return nil, err
	}
	return &found.Entries[0], nil
}

// searchEntry returns an entry that was taken and whose position is not stored. It returns nil
// if the entry was removed or is not near.
func (s *Service) searchEntry(ctx context.Context, n *snapshot, e domain.EntryID) (*repository.Entry, error) {
	if !n.isNear(e) {
		return nil, nil //nolint:nilnil // the entry is not known
	}
	at := n.nearTaken(e)
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

// An entryReader reads the entries of deliveries, up to a number of reads.
type entryReader struct {
	service *Service
	n       *snapshot
	known   map[domain.EntryID]*repository.Entry
	reads   int
}

// maxReads is the limit of the reads of a stream for one page of a list.
const maxReads = 16

// readAhead is the number of entries that are read at a time.
const readAhead = 100

func (s *Service) newEntryReader(n *snapshot) *entryReader {
	return &entryReader{service: s, n: n, known: make(map[domain.EntryID]*repository.Entry)}
}

// addEvent adds the event of its entry to a delivery. After too many reads, it does nothing.
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
