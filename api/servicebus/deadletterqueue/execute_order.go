package deadletterqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/domain"
)

// Limits of the dead letters that one order may pass over, and timeouts.
const (
	maxPassed      = 1_000
	maxPassedBytes = 64 << 20
	receiveTimeout = 3 * time.Second  // if a dead letter is not received within this time, it was deleted or another receiver locked it
	abandonTimeout = 10 * time.Second // a lock that is not released within this time expires later
)

// executeOrder locks the dead letters with the given sequence numbers one after another, and
// settles each with act. It stops at the first failure, and returns the number of settled dead
// letters. It skips numbers of missing dead letters.
func (b *Bus) executeOrder(ctx context.Context, queue string, numbers []int64, act func(*azservicebus.Receiver, *azservicebus.ReceivedMessage) error) (n int, err error) {
	order := b.orderOf(queue)
	if err := order.Acquire(ctx, 1); err != nil {
		return 0, domain.Errorf(domain.Busy, "another order about dead letters of queue %s is being carried out; repeat this one afterwards: %w", queue, err)
	}
	defer order.Release(1)
	err = b.withReceiver(ctx, queue, func(r *azservicebus.Receiver) error {
		t := &execution{
			Bus: b, queue: queue, receiver: r, wanted: slices.Sorted(slices.Values(numbers)),
			settle: func(m *azservicebus.ReceivedMessage) error { return act(r, m) },
		}
		defer t.abandonPassed(ctx)
		if !b.opts.FetchesAny {
			if err := t.settleReceived(ctx); err != nil {
				n = t.settled
				return err
			}
		}
		err := t.settleFetched(ctx)
		n = t.settled
		return err
	})
	return n, err
}

// orderOf returns the semaphore that the running order of a queue holds.
func (b *Bus) orderOf(queue string) *semaphore.Weighted {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.orders[queue] == nil {
		b.orders[queue] = semaphore.NewWeighted(1)
	}
	return b.orders[queue]
}

// An execution executes one order: it locks and settles dead letters of one queue with one
// receiver.
type execution struct {
	*Bus
	queue    string
	receiver *azservicebus.Receiver
	settle   func(*azservicebus.ReceivedMessage) error

	wanted  []int64 // sequence numbers of the dead letters that are not settled yet, ascending
	settled int

	passed      []*azservicebus.ReceivedMessage // dead letters that are locked but not wanted
	passedBytes int64
}

// settleReceived receives dead letters in order and settles the wanted ones, until it receives no
// more.
func (t *execution) settleReceived(ctx context.Context) error {
	for len(t.wanted) > 0 {
		if err := ctx.Err(); err != nil {
			return domain.Errorf(domain.Busy, "the time limit ended before all dead letters were received from queue %s; repeat the order: %w", t.queue, err)
		}
		if len(t.passed) >= maxPassed || t.passedBytes >= maxPassedBytes {
			return domain.Errorf(domain.Conflict, "queue %s has more than %d dead letters in front of number %d, and Service Bus returns them in order; send those again or delete them first", t.queue, len(t.passed), t.wanted[0])
		}
		m, err := t.receiveNext(ctx)
		if m == nil || err != nil {
			return err
		}
		at, isWanted := slices.BinarySearch(t.wanted, numberOf(m))
		if !isWanted {
			t.passed, t.passedBytes = append(t.passed, m), t.passedBytes+sizeOf(m)
			if numberOf(m) > t.wanted[len(t.wanted)-1] {
				return nil // the missing dead letters were deleted, deferred, or locked by another receiver
			}
			continue
		}
		if err := t.settleOne(at, m); err != nil {
			return err
		}
	}
	return nil
}

func (t *execution) settleOne(at int, m *azservicebus.ReceivedMessage) error {
	if err := t.settle(m); err != nil {
		return err
	}
	t.wanted = slices.Delete(t.wanted, at, at+1)
	t.settled++
	return nil
}

// receiveNext locks the next unlocked dead letter. It returns nil if none arrives within
// receiveTimeout.
func (t *execution) receiveNext(ctx context.Context) (*azservicebus.ReceivedMessage, error) {
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiveTimeout)
	defer cancel()
	m, err := busclient.ReceiveOne(waiting, t.receiver)
	switch {
	case err == nil:
		return m, nil
	case busclient.IsPanic(err):
		return nil, err
	case errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil:
		return nil, nil //nolint:nilnil // none is free
	default:
		return nil, &callError{busclient.Classify(err)}
	}
}

// settleFetched fetches the wanted dead letters by their sequence numbers, and settles them.
func (t *execution) settleFetched(ctx context.Context) error {
	for len(t.wanted) > 0 {
		if err := ctx.Err(); err != nil {
			return domain.Errorf(domain.Busy, "the time limit ended before all dead letters were fetched from queue %s; repeat the order: %w", t.queue, err)
		}
		m, err := t.fetch(ctx, t.wanted[0])
		if err != nil {
			return err
		}
		if m != nil {
			if err := t.settleOne(0, m); err != nil {
				return err
			}
			continue
		}
		isThere, err := t.isThere(ctx, t.queue, t.wanted[0])
		if err != nil {
			return err
		}
		if isThere {
			return domain.Errorf(domain.Busy, "dead letter %d of queue %s is locked by another receiver; repeat the order in a minute", t.wanted[0], t.queue)
		}
		t.wanted = t.wanted[1:]
	}
	return nil
}

// fetch locks the dead letter with the given sequence number. It returns nil if the bus does not
// return that dead letter.
func (t *execution) fetch(ctx context.Context, number int64) (m *azservicebus.ReceivedMessage, err error) {
	err = callClient(ctx, func(ctx context.Context) error {
		found, err := t.receiver.ReceiveDeferredMessages(ctx, []int64{number}, nil)
		if len(found) > 0 {
			m = found[0]
		}
		return err
	})
	if failed, ok := errors.AsType[*callError](err); ok && failed.failure.Reason == busclient.NotFound {
		return nil, nil //nolint:nilnil // it is gone, locked, or not deferred
	}
	return m, err
}

// abandonPassed releases the locks of the dead letters that were passed over.
func (t *execution) abandonPassed(ctx context.Context) {
	if len(t.passed) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	for i, m := range t.passed {
		if err := t.receiver.AbandonMessage(ctx, m, nil); err != nil {
			t.opts.Logger.Info("dead letters were passed over and are locked for a while", "queue", t.queue, "dead_letters", len(t.passed)-i, "error", err)
			return
		}
	}
}

// abandon releases the lock of a dead letter.
func (b *Bus) abandon(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) {
	err := callClient(ctx, func(ctx context.Context) error { return r.AbandonMessage(ctx, m, nil) })
	if err != nil {
		b.opts.Logger.Debug("a dead letter was not abandoned and is locked for a while", "sequence_number", numberOf(m), "error", err)
	}
}
