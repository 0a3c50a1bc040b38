package survey

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A replica identifies the stored lines that a table contains: all lines up to a document of a log.
type replica struct {
	series   string
	last     int64
	isLoaded bool
}

// errGap reports that a document that the state names was not found or is damaged.
var errGap = errors.New("a document of the survey cannot be read")

// maxGaps is the number of times that a list may begin again because documents were removed while it read
// them.
const maxGaps = 4

// Surveyed implements repository.Survey.
func (s *Survey) Surveyed(ctx context.Context) (repository.Surveyed, error) {
	if s.owning.Load() {
		return s.table, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Clock()
	if age := now.Sub(s.checked); s.known.isLoaded && age >= 0 && age < freshFor {
		return s.table, nil
	}
	c := s.readers.Begin("read survey")
	for gaps := 0; ; gaps++ {
		st := &surveyState{}
		_, err := c.Read(ctx, s.lines, partition, stateID, st)
		if client.IsNotFound(err) {
			return s.table, nil // no node has surveyed the store yet
		}
		if err == nil {
			if s.owning.Load() {
				return s.table, nil
			}
			err = s.catchUp(ctx, c, st)
		}
		switch {
		case err == nil:
			s.checked = now
			return s.table, nil
		case !errors.Is(err, errGap) || gaps == maxGaps:
			return nil, client.Classify("read the survey", asUnavailable(err))
		}
	}
}

// asUnavailable converts errGap to an Unavailable error, because the failure is temporary: it ends when the
// survey has read all mailboxes again.
func asUnavailable(err error) error {
	if errors.Is(err, errGap) {
		return domain.Errorf(domain.Unavailable, "%w; the node that surveys reads all mailboxes again", err)
	}
	return err
}

// catchUp reads the lines in documents that st names and the table does not contain yet. The caller must
// hold mu.
func (s *Survey) catchUp(ctx context.Context, c *client.Call, st *surveyState) error {
	from := s.known.last + 1
	if !s.known.isLoaded || s.known.series != st.Series || from < st.First || s.known.last > st.Last {
		if err := s.loadSnapshot(ctx, c, st); err != nil {
			return err
		}
		from = st.First
	}
	if err := s.loadParts(ctx, c, int(st.Last-from+1), func(i int) string { return logID(from + int64(i)) }); err != nil {
		return err
	}
	s.table.setAt(st.At)
	s.known = replica{series: st.Series, last: st.Last, isLoaded: true}
	return nil
}

// loadSnapshot replaces the lines of the table by the lines of the snapshot.
func (s *Survey) loadSnapshot(ctx context.Context, c *client.Call, st *surveyState) error {
	s.known = replica{}
	s.table.removeAll()
	return s.loadParts(ctx, c, st.Parts, func(i int) string { return snapshotID(st.Snapshot, i) })
}

// loadParts adds the lines of n documents to the table, in order. It reads and unpacks several documents
// concurrently.
func (s *Survey) loadParts(ctx context.Context, c *client.Call, n int, id func(int) string) error {
	const atOnce = 8
	for begin := 0; begin < n; begin += atOnce {
		found := make([][]tableEntry, min(atOnce, n-begin))
		g, gctx := errgroup.WithContext(ctx)
		for i := range found {
			g.Go(func() (err error) {
				found[i], err = s.loadPart(gctx, c, id(begin+i))
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, entries := range found {
			s.table.setEntries(entries)
		}
		c = c.Renew()
	}
	return nil
}

// loadPart reads a document, and returns its lines as entries of the table.
func (s *Survey) loadPart(ctx context.Context, c *client.Call, id string) ([]tableEntry, error) {
	var p linesPart
	_, err := c.Read(ctx, s.lines, partition, id, &p)
	if client.IsNotFound(err) || domain.KindOf(err) == domain.Damaged {
		return nil, fmt.Errorf("%w: %s: %w", errGap, id, err)
	}
	if err != nil {
		return nil, err
	}
	var entries []tableEntry
	var fault error
	err = unpackLines(p.Lines, func(name string, record []byte) {
		recipient, perr := domain.ParseActorID(name)
		if perr != nil {
			fault = perr
			return
		}
		entries = append(entries, newEntry(s.reader, recipient, record))
	})
	if err = errors.Join(err, fault); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errGap, id, err)
	}
	return entries, nil
}
