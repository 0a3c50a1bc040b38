package broker

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// maxCached is the limit for the parties in memory.
const maxCached = 10_000

// A partyCache caches parties for a short time, because each broadcast needs two of them. It
// caches no missing parties: another node may create a party at any time.
type partyCache struct {
	keep  time.Duration
	clock func() time.Time

	mu      sync.Mutex
	parties map[domain.PartyID]cachedParty
	changes int64 // number of calls of forget
}

type cachedParty struct {
	party *repository.Party // shared, so it must not be changed
	read  time.Time
}

func newPartyCache(keep time.Duration, clock func() time.Time) *partyCache {
	return &partyCache{keep: keep, clock: clock, parties: make(map[domain.PartyID]cachedParty)}
}

// find returns a party that was read less than maxAge ago, or nil. It also returns the number
// of changes, which the caller passes to put.
func (c *partyCache) find(id domain.PartyID, maxAge time.Duration) (*repository.Party, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.parties[id]
	if age := c.clock().Sub(found.read); !ok || age < 0 || age >= maxAge {
		return nil, c.changes
	}
	return found.party, c.changes
}

// put caches a party. changes is the number that find returned before the party was read. If a
// party was forgotten since then, put does nothing: the read may be older than the change.
func (c *partyCache) put(p *repository.Party, read time.Time, changes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changes != c.changes {
		return
	}
	if len(c.parties) >= maxCached {
		clear(c.parties)
	}
	c.parties[p.ID] = cachedParty{p, read}
}

// forget removes a party that this node has changed, or may have changed.
func (c *partyCache) forget(id domain.PartyID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	delete(c.parties, id)
}

// findParty returns a party that was read at most maxAge ago. The caller must not change it.
func (s *Service) findParty(ctx context.Context, id domain.PartyID, maxAge time.Duration) (*repository.Party, error) {
	found, changes := s.cache.find(id, maxAge)
	if found != nil {
		return found, nil
	}
	read := s.opts.Clock()
	found, err := s.ports.Parties.Party(ctx, id)
	if err != nil {
		return nil, err
	}
	s.cache.put(found, read, changes)
	return found, nil
}
