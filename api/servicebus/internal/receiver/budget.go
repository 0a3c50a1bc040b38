package receiver

import (
	"context"
	"sync"
)

// A Budget limits the number and the bytes of held messages. A slot for a message is acquired
// before the message is received. The size of a message is known only after that, so the last
// message may exceed the limit of bytes.
type Budget struct {
	maxMessages, maxBytes int

	mu              sync.Mutex
	messages, bytes int
	room            chan struct{} // closed when a slot becomes free; nil if no caller waits
}

// NewBudget returns a Budget for up to the given number of messages and bytes.
func NewBudget(messages, bytes int) *Budget {
	return &Budget{maxMessages: messages, maxBytes: bytes}
}

// acquireSlot acquires a slot for one message. waited reports whether it had to wait for a free
// slot.
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

// addBytes adds the bytes of a message, whose slot was acquired before.
func (b *Budget) addBytes(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += bytes
}

// releaseSlot releases the slot and the bytes of a message.
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
