package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Cursors implements [repository.Cursors] and [repository.Shards] with maps.
type Cursors struct {
	clock func() time.Time

	mu      sync.Mutex
	cursors map[domain.CursorID]*storedCursor
	shards  map[int][]repository.ShardEntry
	replays map[domain.CursorID]domain.ReplayRequests

	pages       map[watchedStream][]*repository.WatchPage
	pageVersion int
}

var (
	_ repository.Cursors = (*Cursors)(nil)
	_ repository.Shards  = (*Cursors)(nil)
)

type storedCursor struct {
	version  int
	standing domain.Standing
	retries  map[domain.EntryID]domain.Retry
	dead     map[domain.EntryID]deadLetter
	retired  time.Time // zero if the cursor is not retired
}

type deadLetter struct {
	domain.Retry
	stored time.Time
}

// NewCursors returns an empty Cursors. clock must not be nil.
func NewCursors(clock func() time.Time) *Cursors {
	return &Cursors{
		clock: clock, cursors: make(map[domain.CursorID]*storedCursor), shards: make(map[int][]repository.ShardEntry),
		replays: make(map[domain.CursorID]domain.ReplayRequests), pages: make(map[watchedStream][]*repository.WatchPage),
	}
}

// Create implements [repository.Cursors].
func (s *Cursors) Create(ctx context.Context, id domain.CursorID, standing domain.Standing) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create cursor: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.findCursor(id); err == nil {
		return domain.Errorf(domain.Conflict, "cursor %s exists", id)
	}
	if isWatch(id) {
		s.addToPage(id, &standing)
	} else {
		s.ensureEntry(id, standing.Stream)
	}
	s.cursors[id] = &storedCursor{
		standing: standing.Clone(), retries: make(map[domain.EntryID]domain.Retry), dead: make(map[domain.EntryID]deadLetter),
	}
	return nil
}

// findCursor returns a cursor. It first removes the dead letters that have expired.
func (s *Cursors) findCursor(id domain.CursorID) (*storedCursor, error) {
	c := s.cursors[id]
	if c == nil {
		return nil, domain.Errorf(domain.NotFound, "there is no cursor %s", id)
	}
	now := s.clock()
	if !c.retired.IsZero() && now.Sub(c.retired) > repository.DeadLetterRetention+24*time.Hour {
		delete(s.cursors, id)
		delete(s.replays, id)
		return nil, domain.Errorf(domain.NotFound, "there is no cursor %s", id)
	}
	maps.DeleteFunc(c.dead, func(_ domain.EntryID, d deadLetter) bool {
		return now.Sub(d.stored) > repository.DeadLetterRetention
	})
	return c, nil
}

func (c *storedCursor) cursorVersion() repository.CursorVersion {
	return repository.CursorVersion(strconv.Itoa(c.version))
}

// Load implements [repository.Cursors].
func (s *Cursors) Load(ctx context.Context, id domain.CursorID, owner domain.Owner, clock func() time.Time) (*domain.Cursor, repository.CursorVersion, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("load cursor: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findCursor(id)
	if err != nil {
		return nil, "", err
	}
	if !c.retired.IsZero() {
		return nil, "", domain.Errorf(domain.NotFound, "cursor %s is retired", id)
	}
	loaded, err := domain.OpenCursor(c.standing, slices.Collect(maps.Values(c.retries)), owner, clock())
	if err != nil {
		return nil, "", domain.Errorf(domain.Damaged, "cursor %s: %w", id, err)
	}
	s.applySettlement(id, c, loaded.Settlement())
	loaded.Stored()
	return loaded, c.cursorVersion(), nil
}

// Standing implements [repository.Cursors].
func (s *Cursors) Standing(ctx context.Context, id domain.CursorID) (domain.Standing, error) {
	if err := ctx.Err(); err != nil {
		return domain.Standing{}, fmt.Errorf("read cursor: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findCursor(id)
	if err != nil {
		return domain.Standing{}, err
	}
	return c.standing.Clone(), nil
}

// Settle implements [repository.Cursors].
func (s *Cursors) Settle(ctx context.Context, id domain.CursorID, version repository.CursorVersion, t domain.Settlement) (repository.CursorVersion, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("settle: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findCursor(id)
	if err != nil {
		return "", err
	}
	if c.cursorVersion() != version || !c.retired.IsZero() {
		return "", domain.Errorf(domain.Conflict, "cursor %s has another owner, or was settled", id)
	}
	for i := range t.Create {
		if e := t.Create[i].EntryID; c.hasRetry(e) {
			return "", domain.Errorf(domain.Conflict, "cursor %s has a retry or dead letter %s", id, e)
		}
	}
	s.applySettlement(id, c, t)
	return c.cursorVersion(), nil
}

// hasRetry reports whether an entry has a retry or a dead letter.
func (c *storedCursor) hasRetry(e domain.EntryID) bool {
	_, isRetry := c.retries[e]
	_, isDead := c.dead[e]
	return isRetry || isDead
}

// Retire implements [repository.Cursors].
func (s *Cursors) Retire(ctx context.Context, id domain.CursorID, version repository.CursorVersion) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("retire cursor: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findCursor(id)
	switch {
	case err != nil:
		return err
	case !c.retired.IsZero():
		return nil
	case c.cursorVersion() != version:
		return domain.Errorf(domain.Conflict, "cursor %s has another owner, or was settled", id)
	case c.standing.State != domain.Closed || c.standing.Outstanding() > 0:
		return domain.Errorf(domain.Conflict, "cursor %s is not closed, or has deliveries", id)
	}
	c.retired = s.clock()
	s.removeEntry(id)
	s.removeFromPage(id, c.standing.Stream)
	return nil
}

func isWatch(id domain.CursorID) bool {
	_, _, is := domain.WatchOf(id)
	return is
}

// ensureEntry returns the entry of a cursor in its shard, and creates it if it is missing.
func (s *Cursors) ensureEntry(id domain.CursorID, stream domain.StreamName) *repository.ShardEntry {
	shard := repository.ShardOf(id)
	i := slices.IndexFunc(s.shards[shard], func(e repository.ShardEntry) bool { return e.Cursor == id })
	if i < 0 {
		i = len(s.shards[shard])
		s.shards[shard] = append(s.shards[shard], repository.ShardEntry{Cursor: id, Stream: stream})
	}
	return &s.shards[shard][i]
}

// countChanges returns ShardEntry.Changes of a cursor.
func (s *Cursors) countChanges(id domain.CursorID) int64 {
	for _, e := range s.shards[repository.ShardOf(id)] {
		if e.Cursor == id {
			return e.Changes
		}
	}
	return 0
}

// removeEntry removes the entry of a cursor.
func (s *Cursors) removeEntry(id domain.CursorID) {
	shard := repository.ShardOf(id)
	s.shards[shard] = slices.DeleteFunc(s.shards[shard], func(e repository.ShardEntry) bool { return e.Cursor == id })
}

func (s *Cursors) applySettlement(id domain.CursorID, c *storedCursor, t domain.Settlement) {
	if t.List {
		entry := s.ensureEntry(id, t.Standing.Stream)
		if entry.Due.IsZero() || t.Standing.Listed.Before(entry.Due) {
			entry.Due = t.Standing.Listed
		}
	}
	if t.Unlist && s.countChanges(id) == t.Changes {
		s.removeEntry(id)
	}
	c.version++
	c.standing = t.Standing.Clone()
	for _, r := range slices.Concat(t.Create, t.Replace, t.Put) {
		delete(c.retries, r.EntryID)
		delete(c.dead, r.EntryID)
		r.History = slices.Clone(r.History)
		if r.Dead {
			c.dead[r.EntryID] = deadLetter{r, s.clock()}
		} else {
			c.retries[r.EntryID] = r
		}
	}
	for _, e := range t.Delete {
		delete(c.retries, e)
	}
}

// Cursors implements [repository.Shards].
func (s *Cursors) Cursors(ctx context.Context, shard int) ([]repository.ShardEntry, []repository.WatchedStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("cursors of a shard: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.shards[shard]), s.watchedStreams(shard), nil
}

// noteWatchChange records in the entry of a cursor that its watch was replaced or deleted: the entry
// gets a new number of changes. It creates a missing entry, so that the cursor is loaded.
func (s *Cursors) noteWatchChange(id domain.CursorID, stream domain.StreamName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cursors[id]; c != nil && c.retired.IsZero() {
		s.pageVersion++ // differs from Changes of any earlier entry
		s.ensureEntry(id, stream).Changes = int64(s.pageVersion)
	}
}

// noteChange counts a change of a subscription in the entry of its cursor.
func (s *Cursors) noteChange(id domain.CursorID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shard := s.shards[repository.ShardOf(id)]
	for i := range shard {
		if shard[i].Cursor == id {
			shard[i].Changes++
		}
	}
}
