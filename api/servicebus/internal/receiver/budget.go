package receiver

import (
	"context"
	"sync"
)

// A Budget limits the held messages, in number and bytes. Space for a message is reserved
// before it is received. Its size is known only afterwards, so the last message may exceed the
// limit of bytes.
type Budget struct {
	maxMessages, maxBytes int

	mu              sync.Mutex
	messages, bytes int
	room            chan struct{} // closed when there is room again, if a caller waits for it
}

// NewBudget returns an unused budget.
func NewBudget(messages, bytes int) *Budget {
	return &Budget{maxMessages: messages, maxBytes: bytes}
}

// acquireSlot reserves space for one message. It reports whether it had to wait.
func (b *Budget) acquireSlot(ctx context.Context) (waited bool, err error) {
	for ctx.Err() == nil {
		room := b.tryEnter()
		if room == nil {
			return waited, nil
		}
		waited = true
		select {
		case <-room:
		case <-ctx.Done():
		}
	}
	return waited, ctx.Err()
}

func (b *Budget) tryEnter() (room <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.messages < b.maxMessages && b.bytes < b.maxBytes {
		b.messages++
		return nil
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}

// addBytes adds the bytes of a message in an acquired slot.
func (b *Budget) addBytes(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += bytes
}

// releaseSlot releases the space of a message.
func (b *Budget) releaseSlot(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages--
	b.bytes -= bytes
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}
