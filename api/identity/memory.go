package identity

import (
	"crypto/sha256"
	"sync"
)

// memory has the tokens that were verified, by their SHA-256. Of more than limit, the one that was
// verified first is forgotten.
type memory struct {
	limit int

	mu     sync.Mutex
	tokens map[hash]*token
	order  []hash // a ring, in the order of verification
	oldest int    // in order, once it is full
}

type hash = [sha256.Size]byte

const maxRemembered = 10_000

func newMemory(limit int) *memory { return &memory{limit: limit, tokens: make(map[hash]*token)} }

// find returns a token, nil if it is not known.
func (m *memory) find(key hash) *token {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tokens[key]
}

// remember keeps a token.
func (m *memory) remember(key hash, t *token) {
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
func (m *memory) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tokens)
}
