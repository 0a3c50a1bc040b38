package api

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

const (
	// smallAnswer is the memory up to which answers have a pool of their own, so that
	// they never wait for large ones.
	smallAnswer = megabyte

	// What an answer takes in memory while it is sent.
	answerMemory = 128 * kilobyte // buffers
	gzipMemory   = 512 * kilobyte
	eventMemory  = 300 // bytes, of one event
)

// answerCost estimates the memory that the body of b takes while it is sent.
func answerCost(b *domain.Bundle, compress bool) int64 {
	cost := int64(answerMemory)
	if compress {
		cost += gzipMemory
	}
	if b.Content != domain.Request { // that content is streamed
		cost += int64(b.Count) * eventMemory
	}
	return cost
}

// acquireAnswer acquires the memory to send the body of b, or fails with Busy. It
// holds no slot while it waits. The caller closes the hold once the body is sent.
func (s *Server) acquireAnswer(ctx context.Context, b *domain.Bundle, compress bool, slot *storeSlot) (*memoryHold, error) {
	pool, cost := s.largeAnswers, answerCost(b, compress)
	if cost <= smallAnswer {
		pool = s.smallAnswers
	}
	cost = min(cost, pool.share)
	hold := pool.open(slot.actor.String(), paceOf(ctx).interruptWrite)
	if hold.tryAcquire(cost) {
		return hold, nil
	}
	slot.release()
	err := hold.acquire(ctx, cost)
	if err == nil {
		err = slot.acquire(ctx)
	}
	if err != nil {
		hold.close()
		return nil, err
	}
	return hold, nil
}
