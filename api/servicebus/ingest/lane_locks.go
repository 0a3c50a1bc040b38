package ingest

import (
	"context"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// longestUnrenewed is how long a lock goes at most without being renewed, whatever
// it is said to last: clocks may differ.
const longestUnrenewed = 15 * time.Second

// An ownSession is a session whose lock a lane holds.
type ownSession struct {
	*azservicebus.SessionReceiver
	id      string
	places  *places
	keptFor time.Duration // by one renewal
	renewed time.Time     // the last time; set by the lane
}

// keepLocks renews the locks of a lane until ctx ends or they are lost.
func (l *lane) keepLocks(ctx context.Context) {
	if l.session != nil {
		l.keepSession(ctx)
		return
	}
	l.keepMessages(ctx)
}

func (l *lane) keepSession(ctx context.Context) {
	s := l.session
	s.renewed = l.began
	every := min(s.keptFor/2, longestUnrenewed)
	for wait := every; ; {
		pause(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		tried := time.Now()
		err := l.renew(ctx, s.renewed.Add(s.keptFor), func(ctx context.Context) error { return s.RenewSessionLock(ctx, nil) })
		switch {
		case err == nil:
			s.renewed, wait = tried, every
		case ctx.Err() != nil:
			return
		case busclient.ReasonOf(err) == busclient.LockLost || time.Since(s.renewed) >= s.keptFor:
			l.fails(err)
			l.sessionLost(err)
			return
		default:
			l.fails(err) // but what is in hand may still be saved in time
			wait = s.keptFor / 8
		}
	}
}

// renew makes a call when no other is under way.
func (l *lane) renew(ctx context.Context, deadline time.Time, call func(context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if err := l.calls.Acquire(ctx, 1); err != nil {
		return err
	}
	defer l.calls.Release(1)
	return call(ctx)
}

// untilUnlocked is how long it takes for the lock of the session to end, which the bus
// counts as a delivery of what was not settled; closing the receiver would not count.
// It is how a message that nobody can read becomes a dead letter in the end.
func (l *lane) untilUnlocked() time.Duration {
	const slack = time.Second
	return time.Until(l.session.renewed.Add(l.session.keptFor)) + slack
}

// ownMessages are those of a queue without sessions that a lane has in hand, each
// with a lock of its own.
type ownMessages struct {
	*azservicebus.Receiver

	mu     sync.Mutex
	locked map[*message]lease
	added  uint64
}

// A lease is how long a message is locked.
type lease struct {
	until   time.Time
	keptFor time.Duration
	number  uint64 // in the order in which messages came
}

func newOwnMessages(r *azservicebus.Receiver) *ownMessages {
	return &ownMessages{Receiver: r, locked: make(map[*message]lease)}
}

func (o *ownMessages) add(m *message, now time.Time) {
	keptFor := longestUnrenewed
	if m.LockedUntil != nil {
		keptFor = lockDuration(m.LockedUntil.Sub(now))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.added++
	o.locked[m] = lease{time.Now().Add(keptFor), keptFor, o.added}
}

func (o *ownMessages) remove(m *message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.locked, m)
}

func (o *ownMessages) has(m *message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, has := o.locked[m]
	return has
}

// lose notes that the lock of a message has ended, and reports whether that is news.
func (o *ownMessages) lose(m *message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.locked, m)
	news := !m.lost
	m.lost = true
	return news
}

func (o *ownMessages) isLost(m *message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return m.lost
}

// due returns the message whose lock has to be renewed first, if that is by now, or
// else how long it can wait.
func (o *ownMessages) due() (first *message, keptFor, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due time.Time
	for m, k := range o.locked {
		at := k.until.Add(-k.keptFor + min(k.keptFor/2, longestUnrenewed))
		if first == nil || at.Before(due) || at.Equal(due) && k.number < o.locked[first].number {
			first, due = m, at
		}
	}
	const most = time.Second // a new message is not due sooner
	if first == nil {
		return nil, 0, most
	}
	if left := time.Until(due); left > 0 {
		return nil, 0, min(most, left)
	}
	return first, o.locked[first].keptFor, 0
}

func (o *ownMessages) extend(m *message, until time.Time, keptFor time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k, is := o.locked[m]; is {
		o.locked[m] = lease{until, keptFor, k.number}
	}
}

func (l *lane) keepMessages(ctx context.Context) {
	for ctx.Err() == nil {
		m, keptFor, wait := l.messages.due()
		if m == nil {
			pause(ctx, wait)
			continue
		}
		until := time.Now().Add(keptFor)
		err := l.renew(ctx, until, func(ctx context.Context) error {
			if !l.messages.has(m) {
				return nil // it was settled meanwhile, and has no lock any more
			}
			return l.messages.RenewMessageLock(ctx, m.ReceivedMessage, nil)
		})
		switch {
		case err == nil:
			l.messages.extend(m, until, keptFor)
		case ctx.Err() != nil:
		case busclient.ReasonOf(err) == busclient.LockLost:
			l.lockLost(m, err)
		default:
			l.fails(err)
			pause(ctx, keptFor/8)
		}
	}
}
