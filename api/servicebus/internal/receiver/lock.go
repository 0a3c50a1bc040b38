package receiver

import (
	"context"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// longestUnrenewed is the maximum time between two renewals of a lock. It applies even if the bus
// reports a later expiry, because the clocks of the bus and the process may differ.
const longestUnrenewed = 15 * time.Second

// A sessionLock is the lock of the session of a loop.
type sessionLock struct {
	*azservicebus.SessionReceiver
	fairness Fairness
	duration time.Duration // duration of the lock after a renewal
	renewed  time.Time     // time of the last successful renewal; written by renewSession
}

// renewLocks renews the locks of a loop until ctx ends or the locks are lost.
func (l *Loop[T]) renewLocks(ctx context.Context) {
	if l.session != nil {
		l.renewSession(ctx)
		return
	}
	l.renewMessages(ctx)
}

func (l *Loop[T]) renewSession(ctx context.Context) {
	s := l.session
	s.renewed = l.began
	every := min(s.duration/2, longestUnrenewed)
	for wait := every; ; {
		busclient.Sleep(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		tried := time.Now()
		err := l.renewLock(ctx, s.renewed.Add(s.duration), func(ctx context.Context) error { return s.RenewSessionLock(ctx, nil) })
		switch {
		case err == nil:
			s.renewed, wait = tried, every
		case ctx.Err() != nil:
			return
		case busclient.ReasonOf(err) == busclient.LockLost || time.Since(s.renewed) >= s.duration:
			l.Fail(err)
			l.loseSession(err)
			return
		default:
			l.Fail(err) // the loop may still store the held messages before the lock expires
			wait = s.duration / 8
		}
	}
}

// renewLock runs call, which renews a lock, while no other call uses the link.
func (l *Loop[T]) renewLock(ctx context.Context, deadline time.Time, call func(context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if err := l.linkCalls.Acquire(ctx, 1); err != nil {
		return err
	}
	defer l.linkCalls.Release(1)
	return call(ctx)
}

// UntilUnlocked returns the time until the lock of the session expires. The expiry counts as a
// delivery of the unsettled messages, but closing the receiver does not. So if the loop waits for
// the expiry, a message that Microsoft's client cannot decode becomes a dead letter after some
// deliveries.
func (l *Loop[T]) UntilUnlocked() time.Duration {
	const slack = time.Second
	return time.Until(l.session.renewed.Add(l.session.duration)) + slack
}

// messageLocks contains the locks of the messages that a loop holds. It is used for a queue without
// sessions.
type messageLocks[T any] struct {
	*azservicebus.Receiver

	mu     sync.Mutex
	locked map[*Message[T]]lease
	added  uint64
}

// A lease is the time for which a message is locked.
type lease struct {
	until   time.Time
	keptFor time.Duration
	number  uint64 // messages are numbered from 1 in the order of receipt
}

func newMessageLocks[T any](r *azservicebus.Receiver) *messageLocks[T] {
	return &messageLocks[T]{Receiver: r, locked: make(map[*Message[T]]lease)}
}

func (o *messageLocks[T]) addMessage(m *Message[T], now time.Time) {
	keptFor := longestUnrenewed
	if m.LockedUntil != nil {
		keptFor = lockDuration(m.LockedUntil.Sub(now))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.added++
	o.locked[m] = lease{time.Now().Add(keptFor), keptFor, o.added}
}

func (o *messageLocks[T]) removeMessage(m *Message[T]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.locked, m)
}

func (o *messageLocks[T]) hasMessage(m *Message[T]) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, has := o.locked[m]
	return has
}

// markLost records that the lock of a message has expired. It returns false if the loss was already
// recorded.
func (o *messageLocks[T]) markLost(m *Message[T]) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.locked, m)
	news := !m.lost
	m.lost = true
	return news
}

func (o *messageLocks[T]) isLost(m *Message[T]) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return m.lost
}

// nextDue returns the first message whose lock must be renewed now. If no renewal is due, first is
// nil, and wait is the time until the next renewal.
func (o *messageLocks[T]) nextDue() (first *Message[T], keptFor, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due time.Time
	for m, k := range o.locked {
		at := k.until.Add(-k.keptFor + min(k.keptFor/2, longestUnrenewed))
		if first == nil || at.Before(due) || at.Equal(due) && k.number < o.locked[first].number {
			first, due = m, at
		}
	}
	const limit = time.Second // the lock of a message that arrives during the wait is never due earlier
	if first == nil {
		return nil, 0, limit
	}
	if left := time.Until(due); left > 0 {
		return nil, 0, min(limit, left)
	}
	return first, o.locked[first].keptFor, 0
}

func (o *messageLocks[T]) extendLock(m *Message[T], until time.Time, keptFor time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k, is := o.locked[m]; is {
		o.locked[m] = lease{until, keptFor, k.number}
	}
}

func (l *Loop[T]) renewMessages(ctx context.Context) {
	for ctx.Err() == nil {
		m, keptFor, wait := l.messages.nextDue()
		if m == nil {
			busclient.Sleep(ctx, wait)
			continue
		}
		until := time.Now().Add(keptFor)
		err := l.renewLock(ctx, until, func(ctx context.Context) error {
			if !l.messages.hasMessage(m) {
				return nil // the message was settled during the wait, so its lock no longer exists
			}
			return l.messages.RenewMessageLock(ctx, m.ReceivedMessage, nil)
		})
		switch {
		case err == nil:
			l.messages.extendLock(m, until, keptFor)
		case ctx.Err() != nil:
		case busclient.ReasonOf(err) == busclient.LockLost:
			l.loseLock(m, err)
		default:
			l.Fail(err)
			busclient.Sleep(ctx, keptFor/8)
		}
	}
}

// LockDuration returns the duration of the lock of the session.
func (l *Loop[T]) LockDuration() time.Duration { return l.session.duration }

// lockDuration limits the remaining time of a lock to the range from 1 second to 5 minutes. left
// may be wrong, because the clocks of the bus and the process may differ. No lock lasts longer than
// 5 minutes.
func lockDuration(left time.Duration) time.Duration {
	return min(max(left, time.Second), 5*time.Minute)
}
