package api

import (
	"cmp"
	"context"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// A storeSlot is the right of one request to work on the store. The request
// releases the slot while it waits for something else: a domain, or its client.
// The slot also holds the memory for the answer until close.
type storeSlot struct {
	server *Server
	of     *perActorLimiter
	actor  domain.ActorID
	held   bool
	memory *memoryHold // nil: none yet
}

// newStoreSlot waits for a slot. It fails with Busy if it gets no slot in time.
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

// resume waits for the slot until ctx ends: the answer has begun, so it is too
// late to refuse the request.
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

// pause releases the slot and returns a function that acquires it again.
func (s *storeSlot) pause() func(context.Context) error {
	s.release()
	return s.acquire
}

// A slottedBody is the body of a bundle that holds a store slot during each
// Read, and not while the client reads what it returned.
type slottedBody struct {
	hub.Body
	ctx    context.Context //nolint:containedctx // a Reader has nowhere else to get it from
	cancel context.CancelFunc

	mu   sync.Mutex // ServeContent reads the parts of a multipart answer in another goroutine
	slot *storeSlot
	keep int64 // bytes of memory that the body keeps after a Read
	err  error // error of resume
}

// openSlotted opens the body of peeked, which holds only keep bytes of memory after a
// Read. The body owns slot from then on.
func openSlotted(ctx context.Context, peeked *hub.Peeked, slot *storeSlot, keep int64) (*slottedBody, error) {
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

// growMemory is the GrowMemory of a hub.Peeked: the bytes are kept until the slot is
// closed. A Read calls it.
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

// Err returns the error with which a Read failed, if any did.
func (b *slottedBody) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cmp.Or(b.err, b.Body.Err())
}

// Close ends a Read that waits, and releases the slot.
func (b *slottedBody) Close() error {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slot.release()
	return b.Body.Close()
}
