package api

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

const (
	// smallAnswer is the size limit, in bytes, for responses that take memory from a separate pool.
	// They thus never wait for large responses.
	smallAnswer = megabyte

	// Memory of a response, in bytes.
	answerMemory = 128 * kilobyte // buffers, and the payloads that are read ahead without a reservation
	gzipMemory   = 512 * kilobyte
	readMemory   = 300 // memory of one event while the events of a bundle are read
	listMemory   = 72  // memory of one event after the events were read
)

// An answerCost is the estimated memory of a bundle's body in bytes: while its events are read, and
// while it is sent.
type answerCost struct{ reading, sending int64 }

func costOf(b *domain.Bundle, compress bool) answerCost {
	base := int64(answerMemory)
	if compress {
		base += gzipMemory
	}
	if b.Content == domain.Request { // content from a domain is streamed
		return answerCost{base, base}
	}
	return answerCost{base + int64(b.Count)*readMemory, base + int64(b.Count)*listMemory}
}

// reserveEvents acquires the memory to read the given number of events, or fails with Busy. It
// implements hub.PeekRequest.Reserve.
func (s *storeSlot) reserveEvents(ctx context.Context, events int) error {
	return s.reserve(ctx, answerMemory+int64(events)*readMemory)
}

// reserve extends the memory of the request to at least n bytes, or fails with Busy. While it
// waits, it releases the store slot.
func (s *storeSlot) reserve(ctx context.Context, n int64) error {
	pool := s.server.largeAnswers
	if n <= smallAnswer {
		pool = s.server.smallAnswers
	}
	n = min(n, pool.share)
	switch {
	case s.memory != nil && s.memory.bytes >= n:
		return nil
	case s.memory != nil && s.memory.pool != pool:
		s.memory.close()
		s.memory = nil
	}
	if s.memory == nil {
		s.memory = pool.open(s.actor.String(), paceOf(ctx).interruptWrite)
	}
	more := n - s.memory.bytes
	if s.memory.tryAcquire(more) {
		return nil
	}
	s.release()
	if err := s.memory.acquire(ctx, more); err != nil {
		return err
	}
	return s.acquire(ctx)
}
