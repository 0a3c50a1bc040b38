package api

import (
	"cmp"
	"context"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// A storeSlot is the right of one request to use the store. The request releases it while it waits
// for a domain or for its client. The storeSlot also holds the memory of the response, until it is
// closed.
type storeSlot struct {
	server *Server
	of     *perActorLimiter
	actor  domain.ActorID
	held   bool
	memory *memoryHold // memory of the response; nil if none is reserved yet
}

// newStoreSlot waits for a slot. It fails with Busy if no slot becomes free in time.
func (s *Server) newStoreSlot(ctx context.Context, actor domain.ActorID) (*storeSlot, error) {
	slot := &storeSlot{server: s, of: s.peeks, actor: actor}
	if err := slot.acquire(ctx); err != nil {
		return nil, err
	}
	return slot, nil
}

func (s *storeSlot) acquire(ctx context.Context) error {
	if s.held {
		return nil
	}
	err := s.of.acquire(ctx, s.actor)
	s.held = err == nil
	return err
}

// resume waits for the slot until ctx ends. It has no timeout, because a response that has started
// cannot become a refusal.
func (s *storeSlot) resume(ctx context.Context) error {
	if s.held {
		return nil
	}
	err := s.of.wait(ctx, s.actor)
	s.held = err == nil
	return err
}

func (s *storeSlot) release() {
	if s.held {
		s.of.release(s.actor)
		s.held = false
	}
}

// close releases the slot and the memory.
func (s *storeSlot) close() {
	s.release()
	if s.memory != nil {
		s.memory.close()
	}
}

// pause releases the slot, and returns a function that acquires it again.
func (s *storeSlot) pause() func(context.Context) error {
	s.release()
	return s.acquire
}

// A slottedBody is the body of a bundle. It holds a store slot during each Read, but not while the
// client reads the bytes.
type slottedBody struct {
	hub.Body
	ctx    context.Context //nolint:containedctx // a Reader has nowhere else to get it from
	cancel context.CancelFunc

	mu   sync.Mutex // guards the body, because ServeContent reads multipart responses in another goroutine
	slot *storeSlot
	keep int64 // maximum bytes of memory that the body may retain after a Read
	err  error // error with which resume has failed
}

// openSlotted opens the body of peeked. After a Read, the body retains only keep bytes of memory.
// The body owns slot from now on.
func openSlotted(ctx context.Context, peeked *hub.PeekedBundle, slot *storeSlot, keep int64) (*slottedBody, error) {
	ctx, cancel := context.WithCancel(ctx)
	b := &slottedBody{ctx: ctx, cancel: cancel, slot: slot, keep: keep}
	peeked.GrowMemory = b.growMemory
	var err error
	if b.Body, err = peeked.Open(ctx); err != nil {
		cancel()
		return nil, err
	}
	return b, nil
}

// growMemory implements hub.PeekedBundle.GrowMemory, which a Read calls. The bytes are reserved
// until the slot is closed.
func (b *slottedBody) growMemory(n int64) bool {
	if b.slot.memory == nil || !b.slot.memory.tryAcquire(n) {
		return false
	}
	b.keep += n
	return true
}

// Read implements io.Reader.
func (b *slottedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.slot.resume(b.ctx); err != nil {
		b.err = err
		return 0, err
	}
	defer b.slot.release()
	n, err := b.Body.Read(p)
	if b.slot.memory != nil {
		b.slot.memory.shrink(b.keep)
	}
	return n, err
}

// Err returns the error of the first failed Read, or nil.
func (b *slottedBody) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cmp.Or(b.err, b.Body.Err())
}

// Close ends a waiting Read, and releases the slot.
func (b *slottedBody) Close() error {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slot.release()
	return b.Body.Close()
}
