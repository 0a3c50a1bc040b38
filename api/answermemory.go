package api

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

const (
	// smallAnswer is the memory up to which answers have a pool of their own, so that
	// they never wait for large ones.
	smallAnswer = megabyte

	// The memory that an answer needs.
	answerMemory = 128 * kilobyte // buffers, and the payloads that are read ahead without a reservation
	gzipMemory   = 512 * kilobyte
	readMemory   = 300 // bytes, of one event while the events of a bundle are read
	listMemory   = 72  // bytes, of one event once they are read
)

// An answerCost estimates the memory that the body of a bundle takes.
type answerCost struct{ reading, sending int64 }

func costOf(b *domain.Bundle, compress bool) answerCost {
	base := int64(answerMemory)
	if compress {
		base += gzipMemory
	}
	if b.Content == domain.Request { // the content is streamed
		return answerCost{base, base}
	}
	return answerCost{base + int64(b.Count)*readMemory, base + int64(b.Count)*listMemory}
}

// reserveEvents acquires the memory to read that number of events, or fails with Busy. It is
// the Reserve of a hub.PeekRequest.
func (s *storeSlot) reserveEvents(ctx context.Context, events int) error {
	return s.reserve(ctx, answerMemory+int64(events)*readMemory)
}

// reserve makes the request hold n bytes of memory at least, or fails with Busy. It
// gives the slot back while it waits.
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
