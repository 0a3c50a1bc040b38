package broker

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// maxCached is the maximum number of parties in the cache.
const maxCached = 10_000

// A partyCache caches parties for a short time, because each broadcast needs two of them. It does not cache that a
// party is missing, because any node may create it at any time.
type partyCache struct {
	keep  time.Duration
	clock func() time.Time

	mu      sync.Mutex
	parties map[domain.PartyID]cachedParty
	changes int64 // changes counts the calls of forget
}

type cachedParty struct {
	party *repository.Party // party is shared and must not be changed
	read  time.Time
}

func newPartyCache(keep time.Duration, clock func() time.Time) *partyCache {
	return &partyCache{keep: keep, clock: clock, parties: make(map[domain.PartyID]cachedParty)}
}

// find returns a party that was read less than maxAge ago, or nil. It also returns the value of changes, which the
// caller must pass to put.
func (c *partyCache) find(id domain.PartyID, maxAge time.Duration) (*repository.Party, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.parties[id]
	if age := c.clock().Sub(found.read); !ok || age < 0 || age >= maxAge {
		return nil, c.changes
	}
	return found.party, c.changes
}

// put caches a party. changes is the value that find returned before the party was read. If forget was called since
// then, put does nothing, because the read may be older than a change.
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

// forget removes a party that this node may have changed.
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
