package receiver

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// collectBatch returns m and all other messages that have already been received.
func (l *Loop[T]) collectBatch(m *Message[T], received <-chan *Message[T]) []*Message[T] {
	var batch []*Message[T]
	for m != nil {
		batch = append(batch, m)
		select {
		case m = <-received:
		default:
			m = nil
		}
	}
	return batch
}

// acquireStore waits while the limit of concurrent stores is reached. Messages that arrive during
// the wait join the batch, because one large batch is faster than several small ones. After a short
// wait the batch is stored anyway: other stores may be blocked by a failure that does not affect
// this loop.
func (l *Loop[T]) acquireStore(ctx context.Context) {
	const limit = 250 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l.storing = l.Stores.Acquire(ctx, 1) == nil
}

// EndStore permits another loop to store. A handler calls it before it waits for a retry.
func (l *Loop[T]) EndStore() {
	if l.storing {
		l.Stores.Release(1)
	}
	l.storing = false
}

// waitNext waits for the next message, and returns nil when the loop must end. A session ends if no
// message arrives for Limits.Linger, or sooner if another session waits.
func (l *Loop[T]) waitNext(ctx context.Context, received <-chan *Message[T]) *Message[T] {
	if l.session == nil {
		return l.nextOfQueue(ctx, received)
	}
	select {
	case m := <-received:
		return m
	default:
	}
	const moment = 20 * time.Millisecond
	linger := time.NewTimer(l.Limits.Linger)
	defer linger.Stop()
	wanted := l.session.fairness.Wanted()
	var last <-chan time.Time
	for {
		select {
		case m := <-received:
			return m
		case <-linger.C:
			l.stopReceiving()
		case <-wanted:
			wanted, last = nil, time.After(moment)
		case <-last:
			if !l.makeWay() {
				wanted = l.session.fairness.Wanted()
			}
		}
	}
}

// nextOfQueue waits for a message of a queue without sessions. During the wait, it retries the
// parked messages.
func (l *Loop[T]) nextOfQueue(ctx context.Context, received <-chan *Message[T]) *Message[T] {
	if l.Parker == nil {
		return <-received
	}
	for {
		l.Parker.Retry(ctx)
		at, parked := l.Parker.RetryAt()
		if !parked {
			return <-received
		}
		due := time.NewTimer(time.Until(at))
		select {
		case m := <-received:
			due.Stop()
			return m
		case <-due.C:
		}
	}
}

// waitForRoom waits until another message can be parked, or ctx ends.
func (l *Loop[T]) waitForRoom(ctx context.Context) {
	for l.Parker != nil && l.Parker.IsFull() && ctx.Err() == nil {
		at, _ := l.Parker.RetryAt()
		busclient.Sleep(ctx, time.Until(at))
		l.Parker.Retry(ctx)
	}
}

// endTurn ends a session that has used up its time or messages, if another session waits.
func (l *Loop[T]) endTurn() {
	if l.session != nil && (time.Since(l.began) > l.Limits.Turn || l.handled > l.Limits.TurnMessages) {
		l.makeWay()
	}
}

func (l *Loop[T]) makeWay() bool {
	if !l.moving && l.session.fairness.MakeWay() {
		l.moving = true
		l.stopReceiving()
	}
	return l.moving
}
