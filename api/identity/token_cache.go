package identity

import (
	"crypto/sha256"
	"sync"
)

// tokenCache caches verified tokens by their SHA-256. If the cache is full, a new token replaces
// the oldest one.
type tokenCache struct {
	limit int

	mu     sync.Mutex
	tokens map[hash]*verifiedToken
	order  []hash // ring buffer of the tokens' hashes, in the order in which they were added
	oldest int    // index of the token that was added first, once the ring is full
}

type hash = [sha256.Size]byte

const maxRemembered = 10_000

func newTokenCache(limit int) *tokenCache {
	return &tokenCache{limit: limit, tokens: make(map[hash]*verifiedToken)}
}

// findToken returns a cached token, or nil if it is not cached.
func (m *tokenCache) findToken(key hash) *verifiedToken {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tokens[key]
}

// addToken adds a token.
func (m *tokenCache) addToken(key hash, t *verifiedToken) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, isThere := m.tokens[key]; !isThere {
		if len(m.order) < m.limit {
			m.order = append(m.order, key)
		} else {
			delete(m.tokens, m.order[m.oldest])
			m.order[m.oldest] = key
			m.oldest = (m.oldest + 1) % m.limit
		}
	}
	m.tokens[key] = t
}

// size returns the number of tokens.
func (m *tokenCache) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tokens)
}
