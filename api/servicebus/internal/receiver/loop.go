package receiver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/tracing"
)

// Options are the options of a Loop. Parker and Tracer are optional; all other fields are required.
type Options[T any] struct {
	Queue   string
	Handler Handler[T]
	Parker  Parker // nil if Store never parks messages
	Limits  Limits
	InHand  *Budget             // limits the held messages of all loops together
	Stores  *semaphore.Weighted // each concurrent call to Store, from any loop, holds a token
	Metrics *Metrics
	Logger  *slog.Logger
	Tracer  *tracing.Tracer  // nil if spans are not recorded
	Clock   func() time.Time // clock with which the expiry of a lock is compared; the bus uses its own clock
}

// Limits are the limits of one loop.
type Limits struct {
	Messages int // held messages
	Bytes    int // maximum number of held bytes; the last message may exceed it

	Settle time.Duration // time limit for settling one message

	Linger       time.Duration // time for which an idle session stays open
	Turn         time.Duration // time after which a session yields to waiting sessions
	TurnMessages int           // number of messages after which a session yields to waiting sessions
}

// A busReceiver is implemented by azservicebus.Receiver and azservicebus.SessionReceiver.
type busReceiver interface {
	busclient.Receiver
	CompleteMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.CompleteMessageOptions) error
	DeadLetterMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.DeadLetterOptions) error
	Close(ctx context.Context) error
}

// A Loop passes the messages of one receiver to a handler. The receiver serves either one session
// or a queue without sessions.
type Loop[T any] struct {
	Options[T]
	receiver busReceiver

	session  *sessionLock     // nil for a queue without sessions
	messages *messageLocks[T] // nil for a session

	stopReceiving context.CancelFunc
	owned         context.Context //nolint:containedctx // ends when the lock of the session is lost
	lose          context.CancelFunc

	began    time.Time
	received int  // received messages
	handled  int  // handled messages
	moving   bool // whether the session yields to another session

	storing   bool // whether the loop holds a token of Stores
	inHand    *Budget
	unsettled chan *Message[T] // messages that were passed to Settle

	// linkCalls is held during each settlement and renewal, because these calls reopen a lost link.
	// If two concurrent calls both opened a link, the client would lose track of one link, together
	// with its goroutines.
	linkCalls *semaphore.Weighted

	mu  sync.Mutex
	err error // the first error of the loop
}

// NewSession returns a loop for a session. fairness determines when the session yields to other
// sessions.
func NewSession[T any](o Options[T], r *azservicebus.SessionReceiver, fairness Fairness) *Loop[T] {
	l := newLoop(o, r)
	l.session = &sessionLock{SessionReceiver: r, fairness: fairness, duration: lockDuration(r.LockedUntil().Sub(o.Clock()))}
	return l
}

// NewQueue returns a loop for a queue without sessions.
func NewQueue[T any](o Options[T], r *azservicebus.Receiver) *Loop[T] {
	l := newLoop(o, r)
	l.messages = newMessageLocks[T](r)
	return l
}

func newLoop[T any](o Options[T], r busReceiver) *Loop[T] {
	return &Loop[T]{
		Options: o, receiver: r,
		inHand:    NewBudget(o.Limits.Messages, o.Limits.Bytes),
		linkCalls: semaphore.NewWeighted(1),
		began:     time.Now(),

		// The channel's capacity equals the limit of held messages, so a send never blocks.
		unsettled: make(chan *Message[T], o.Limits.Messages),
	}
}

// Run receives messages until ctx ends, the session has no more messages or yields, or the bus
// fails. It returns the error of the bus. It finishes held messages until work ends. When Run
// returns, it holds no messages, and the receiver is still open.
func (l *Loop[T]) Run(ctx, work context.Context) error {
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	owned, lose := context.WithCancel(context.WithoutCancel(work))
	defer lose()
	holding, release := context.WithCancel(owned) // ends when the lock of the session is lost or the grace period has passed
	defer release()
	defer context.AfterFunc(work, release)()
	l.stopReceiving, l.owned, l.lose = stop, owned, lose

	received := make(chan *Message[T], cap(l.unsettled))
	renewing, done := context.WithCancel(owned)
	defer done()
	var working, renewal sync.WaitGroup
	working.Go(func() {
		defer close(received)
		l.receiveMessages(receiving, received)
	})
	working.Go(l.settleAll)
	renewal.Go(func() { l.renewLocks(renewing) })

	for m := l.waitNext(holding, received); m != nil; m = l.waitNext(holding, received) {
		l.acquireStore(holding)
		batch := l.collectBatch(m, received)
		l.storeBatch(holding, batch)
		l.EndStore()
		l.handled += len(batch)
		l.waitForRoom(holding)
		l.endTurn()
	}
	if l.Parker != nil {
		l.Parker.AbandonParked()
	}
	close(l.unsettled)
	working.Wait()
	done()
	renewal.Wait()
	return l.err
}

// storeBatch settles the rejected messages, and passes the valid messages to the handler.
func (l *Loop[T]) storeBatch(ctx context.Context, ms []*Message[T]) {
	batch := make([]*Message[T], 0, len(ms))
	for _, m := range ms {
		if m.Rejection != nil {
			l.Settle(m)
			continue
		}
		batch = append(batch, m)
	}
	if len(batch) > 0 {
		l.Handler.Store(ctx, batch)
	}
}

// Close closes the receiver, which returns the session and its messages to the bus.
func (l *Loop[T]) Close(ctx context.Context) {
	if err := busclient.Outlast(ctx, busclient.CloseTimeout, l.receiver.Close); err != nil {
		l.Logger.Debug("a receiver was not closed in time", "error", err)
	}
}

// Received returns the number of messages that the loop has received. It must be called after Run
// has returned.
func (l *Loop[T]) Received() int { return l.received }

// MadeWay reports whether the session ended because it yielded to another session. It must be
// called after Run has returned.
func (l *Loop[T]) MadeWay() bool { return l.moving }

// Fail ends the loop with the error err. The loop receives no more messages, but finishes the
// messages that it holds.
func (l *Loop[T]) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.stopReceiving()
}

// receiveMessages receives messages one at a time, until ctx ends or a receive call fails.
func (l *Loop[T]) receiveMessages(ctx context.Context, received chan<- *Message[T]) {
	for {
		if l.acquireRoom(ctx) != nil {
			return
		}
		raw, err := busclient.ReceiveOne(ctx, l.receiver)
		if err != nil {
			l.releaseRoom(0)
			if ctx.Err() == nil {
				l.failReceiving(err)
			}
			return
		}
		l.Metrics.received.WithLabelValues(l.Queue).Inc()
		l.Metrics.inHand.Inc()
		l.received++
		m := &Message[T]{ReceivedMessage: raw}
		l.startSpan(ctx, m)
		m.Content, m.Weight, m.Rejection = l.Handler.Decode(raw)
		m.linkToCauses()
		l.inHand.addBytes(m.Weight)
		l.InHand.addBytes(m.Weight)
		if l.messages != nil {
			l.messages.addMessage(m, l.Clock())
		}
		received <- m
	}
}

func (l *Loop[T]) failReceiving(err error) {
	l.Fail(err)
	if panicked, is := errors.AsType[*busclient.PanicError](err); is {
		l.Metrics.panics.WithLabelValues(l.Queue).Inc()
		l.Logger.Error("a message cannot be read; it is delivered again until the bus makes it a dead letter", "error", panicked)
		return
	}
	if l.session != nil { // if the link of a session is lost, so is the lock of the session
		l.loseSession(err)
	}
}

// acquireRoom waits until one more message fits into the budgets of this loop and of all loops.
func (l *Loop[T]) acquireRoom(ctx context.Context) error {
	waited, err := l.inHand.acquireSlot(ctx)
	if err != nil {
		return err
	}
	waitedToo, err := l.InHand.acquireSlot(ctx)
	if err != nil {
		l.inHand.releaseSlot(0)
		return err
	}
	if waited || waitedToo {
		// No call used the link during the wait. If the link is lost, another call may be reopening
		// it, so acquireRoom waits for that call. If that call fails, the loop ends.
		if err = l.linkCalls.Acquire(ctx, 1); err == nil {
			l.linkCalls.Release(1)
			err = ctx.Err()
		}
		if err != nil {
			l.releaseRoom(0)
		}
	}
	return err
}

func (l *Loop[T]) releaseRoom(weight int) {
	l.inHand.releaseSlot(weight)
	l.InHand.releaseSlot(weight)
}

// Abandon returns messages to the bus, which delivers them again.
func (l *Loop[T]) Abandon(ms ...*Message[T]) {
	for _, m := range ms {
		l.endWork(m)
	}
}

// endWork releases the lock, the budget and the span of a message that was settled or abandoned.
func (l *Loop[T]) endWork(m *Message[T]) {
	if l.messages != nil {
		l.messages.removeMessage(m)
	}
	l.releaseRoom(m.Weight)
	l.Metrics.inHand.Dec()
	m.span.End()
}
