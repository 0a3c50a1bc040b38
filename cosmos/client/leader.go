package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Leader groups the writes of many callers. Each caller queues an item. One caller leads: it runs a
// round, which takes items from the queue and completes them, and then another waiting caller leads. So
// a Leader needs no goroutine. An item must be in only one call of Do at a time.
type Leader[T comparable] struct {
	name    string
	timeout time.Duration
	round   func(context.Context)
	reset   func()

	mu      sync.Mutex
	busy    bool             // whether a caller leads
	callers []*queuedCall[T] // callers with unfinished items, in order of arrival
	inRound int              // number of callers, from the front of the queue, whose items are in the round
}

type queuedCall[T comparable] struct {
	item  T
	state callerState
	err   error
	lead  chan struct{} // closed when the caller must lead
	done  chan struct{} // closed when err is set
}

type callerState int

const (
	waiting callerState = iota
	leading
	gone // the caller's context has ended
)

// NewLeader returns a Leader. One caller at a time calls round, with a context that ends after timeout
// rather than with the caller's context. If round panics, every item fails, and reset is called before
// another caller leads. name is the prefix of each error.
func NewLeader[T comparable](name string, timeout time.Duration, round func(context.Context), reset func()) *Leader[T] {
	return &Leader[T]{name: name, timeout: timeout, round: round, reset: reset}
}

// Do queues item and returns the error with which the item is completed. While it waits, it may lead. If
// ctx ends before a round takes the item, Do removes the item from the queue and fails with
// Unavailable. If ctx ends after that, Do fails with Uncertain.
func (l *Leader[T]) Do(ctx context.Context, item T) error {
	c := &queuedCall[T]{item: item, lead: make(chan struct{}), done: make(chan struct{})}
	l.mu.Lock()
	l.callers = append(l.callers, c)
	if !l.busy {
		l.busy = true
		c.startLeading()
	}
	l.mu.Unlock()

	select {
	case <-c.lead:
		l.leadRounds(ctx)
	case <-c.done:
	case <-ctx.Done():
		if err, hasLeft := l.leaveQueue(ctx, c); hasLeft {
			return err
		}
		l.leadRounds(ctx)
	}
	<-c.done
	return c.err
}

// Take moves items from the queue into the round, in order of arrival, until fits returns false.
func (l *Leader[T]) Take(fits func(T) bool) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	var items []T
	for ; l.inRound < len(l.callers) && fits(l.callers[l.inRound].item); l.inRound++ {
		items = append(items, l.callers[l.inRound].item)
	}
	return items
}

// Complete returns err to the caller of an item that Take has returned.
func (l *Leader[T]) Complete(item T, err error) {
	l.mu.Lock()
	i := slices.IndexFunc(l.callers, func(c *queuedCall[T]) bool { return c.item == item })
	c := l.callers[i]
	l.callers = slices.Delete(l.callers, i, i+1)
	l.inRound--
	l.mu.Unlock()
	c.complete(err)
}

// Queued returns the number of items in the queue that are not in a round.
func (l *Leader[T]) Queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.callers) - l.inRound
}

func (c *queuedCall[T]) startLeading() {
	c.state = leading
	close(c.lead)
}

func (c *queuedCall[T]) complete(err error) {
	c.err = err
	close(c.done)
}

// leaveQueue removes c, whose context has ended, unless c has just become the leader.
func (l *Leader[T]) leaveQueue(ctx context.Context, c *queuedCall[T]) (err error, hasLeft bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.state == leading {
		return nil, false
	}
	c.state = gone
	if i := slices.Index(l.callers, c); i >= l.inRound {
		l.callers = slices.Delete(l.callers, i, i+1)
		return domain.Errorf(domain.Unavailable, "%s: the context ended before the item was taken: %w", l.name, ctx.Err()), true
	}
	return domain.Errorf(domain.Uncertain, "%s: the context ended while the item was in a round: %w", l.name, ctx.Err()), true
}

// leadRounds runs rounds until another caller leads or the queue is empty. It completes the items of
// other callers even if the context of the leading caller ends.
func (l *Leader[T]) leadRounds(ctx context.Context) {
	defer l.failAfterPanic()
	for {
		round, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
		l.round(round)
		cancel()
		if l.handOver() {
			return
		}
	}
}

// failAfterPanic completes every item with an error if the leader panics, because otherwise the waiting
// callers would wait forever. It panics again with the same value.
func (l *Leader[T]) failAfterPanic() {
	p := recover()
	if p == nil {
		return
	}
	l.mu.Lock()
	left := l.callers
	l.callers, l.inRound = nil, 0
	l.reset()
	l.busy = false // once the lock is released, the next caller may lead
	l.mu.Unlock()
	for _, c := range left {
		c.complete(domain.Errorf(domain.Uncertain, "%s: the caller that led a group panicked: %v", l.name, p))
	}
	panic(p)
}

// handOver makes the first waiting caller the leader, and reports whether the present leader is done.
// The leader is not done while the queue has items but no waiting caller: the contexts of these items'
// callers have ended, or an item is the leader's own.
func (l *Leader[T]) handOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.callers {
		if c.state == waiting {
			c.startLeading()
			return true
		}
	}
	l.busy = len(l.callers) > 0
	return !l.busy
}
