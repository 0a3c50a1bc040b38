package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Streams stores messages in slices until their retention has passed.
type Streams struct {
	retention time.Duration
	clock     func() time.Time

	mu      sync.Mutex
	streams map[domain.StreamName]*storedStream
}

var _ repository.Streams = (*Streams)(nil)

type storedStream struct {
	entries [domain.Priorities][]repository.Entry // the entries whose retention has not passed
	numbers [domain.Priorities]int64              // number of the next entry of each priority
	ids     map[string]sentID
	sync    []domain.CursorID
}

type sentID struct {
	position domain.Position
	digest   [32]byte
	sent     time.Time
}

// NewStreams returns an empty Streams. clock must not be nil.
func NewStreams(retention time.Duration, clock func() time.Time) *Streams {
	return &Streams{retention: retention, clock: clock, streams: make(map[domain.StreamName]*storedStream)}
}

// findStream returns a stream. It first removes entries and ids that have expired.
func (s *Streams) findStream(name domain.StreamName, now time.Time) *storedStream {
	st := s.streams[name]
	if st == nil {
		st = &storedStream{ids: make(map[string]sentID)}
		s.streams[name] = st
	}
	for p := range st.entries {
		st.entries[p] = slices.DeleteFunc(st.entries[p], func(e repository.Entry) bool { return now.Sub(e.Published) > s.retention })
	}
	for id, sent := range st.ids {
		if now.Sub(sent.sent) > repository.IDRetention {
			delete(st.ids, id)
		}
	}
	return st
}

// Append implements [repository.Streams].
func (s *Streams) Append(ctx context.Context, name domain.StreamName, messages []domain.Message) ([]repository.Appended, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	if err := repository.CheckAppend(messages); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, span := s.clock(), domain.TraceContextOf(ctx).Stored()
	st := s.findStream(name, now)
	appended := make([]repository.Appended, len(messages))
	for i := range messages {
		m := messages[i]
		digest := m.Digest()
		if before, ok := st.ids[m.ID]; ok && m.ID != "" {
			appended[i] = repository.Appended{Position: before.position, Outcome: repository.AppendDuplicate}
			if before.digest != digest {
				appended[i].Outcome = repository.AppendConflict
			}
			continue
		}
		p := domain.Position{EntryID: domain.EntryID{Priority: m.Priority, Number: st.numbers[m.Priority]}}
		if m.Version > 0 && m.Version-1 != p.Number {
			p.Number = m.Version - 1
			appended[i] = repository.Appended{Position: p, Outcome: repository.VersionOutcome(m.Version, st.numbers[m.Priority])}
			continue
		}
		st.numbers[m.Priority]++
		st.ids[m.ID] = sentID{p, digest, now}
		m.Payload = slices.Clone(m.Payload)
		st.entries[m.Priority] = append(st.entries[m.Priority], repository.Entry{Message: m, Position: p, Published: now, Accepted: span})
		appended[i].Position, appended[i].Published, appended[i].Accepted = p, now, span
	}
	for i := range appended {
		appended[i].Sync = st.sync
	}
	return appended, nil
}

// AddSync implements [repository.Streams].
func (s *Streams) AddSync(ctx context.Context, name domain.StreamName, id domain.CursorID) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("add sync: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.findStream(name, s.clock())
	if !slices.Contains(st.sync, id) {
		st.sync = append(slices.Clip(st.sync), id) // a new array, because callers may still use the old slice
	}
	return nil
}

// Sync implements [repository.Streams].
func (s *Streams) Sync(ctx context.Context, name domain.StreamName) ([]domain.CursorID, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findStream(name, s.clock()).sync, nil
}

// RemoveSync implements [repository.Streams].
func (s *Streams) RemoveSync(ctx context.Context, name domain.StreamName, id domain.CursorID) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove sync: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.findStream(name, s.clock())
	st.sync = slices.DeleteFunc(slices.Clone(st.sync), func(listed domain.CursorID) bool { return listed == id })
	return nil
}

// Read implements [repository.Streams].
func (s *Streams) Read(ctx context.Context, name domain.StreamName, from domain.Position, limit int) (repository.Entries, error) {
	if err := ctx.Err(); err != nil {
		return repository.Entries{}, fmt.Errorf("read: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.findStream(name, s.clock())
	first := st.numbers[from.Priority] - int64(len(st.entries[from.Priority]))
	start := from
	start.Number = max(from.Number, first)
	rest := st.entries[from.Priority][min(start.Number-first, int64(len(st.entries[from.Priority]))):]
	return repository.Entries{Entries: slices.Clone(rest[:min(limit, len(rest))]), Start: start}, nil
}

// Seek implements [repository.Streams].
func (s *Streams) Seek(ctx context.Context, name domain.StreamName, priority int, isBefore func(number int64, published time.Time) bool) (domain.Position, error) {
	if err := ctx.Err(); err != nil {
		return domain.Position{}, fmt.Errorf("seek: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.findStream(name, s.clock()).entries[priority] {
		if !isBefore(e.Position.Number, e.Published) {
			return e.Position, nil
		}
	}
	return domain.Position{EntryID: domain.EntryID{Priority: priority, Number: s.streams[name].numbers[priority]}}, nil
}

// Find implements [repository.Streams].
func (s *Streams) Find(ctx context.Context, name domain.StreamName, id string) (domain.Position, error) {
	if err := ctx.Err(); err != nil {
		return domain.Position{}, fmt.Errorf("find: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sent, ok := s.findStream(name, s.clock()).ids[id]
	if !ok || id == "" {
		return domain.Position{}, domain.Errorf(domain.NotFound, "the stream has no recent message with this id")
	}
	return sent.position, nil
}

// CurrentEnd implements [repository.Streams].
func (s *Streams) CurrentEnd(ctx context.Context, name domain.StreamName) (repository.StreamEnd, error) {
	return s.End(ctx, name)
}

// End implements [repository.Streams].
func (s *Streams) End(ctx context.Context, name domain.StreamName) (repository.StreamEnd, error) {
	if err := ctx.Err(); err != nil {
		return repository.StreamEnd{}, fmt.Errorf("end: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.findStream(name, s.clock())
	var end repository.StreamEnd
	for p, n := range st.numbers {
		if n > 0 {
			end.Positions = append(end.Positions, domain.Position{EntryID: domain.EntryID{Priority: p, Number: n}})
		}
	}
	return end, nil
}
