package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// AddReplay implements [repository.Shards].
func (s *Cursors) AddReplay(ctx context.Context, id domain.CursorID, followed int, r domain.ReplayRequest) (number int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("request a replay: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shard := s.shards[repository.ShardOf(id)]
	i := slices.IndexFunc(shard, func(e repository.ShardEntry) bool { return e.Cursor == id })
	if i < 0 {
		return 0, domain.Errorf(domain.NotFound, "there is no cursor %s", id)
	}
	if stored := s.replays[id].Find(r.ID); stored != nil {
		return stored.Number, nil
	}
	next, err := s.replays[id].Add(followed, r)
	if err != nil {
		return 0, err
	}
	s.replays[id] = next
	shard[i].Requested = next[len(next)-1].Number
	return shard[i].Requested, nil
}

// Replays implements [repository.Shards].
func (s *Cursors) Replays(ctx context.Context, id domain.CursorID) (domain.ReplayRequests, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read the replays of a cursor: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.findCursor(id); err != nil {
		return nil, err
	}
	return slices.Clone(s.replays[id]), nil
}
