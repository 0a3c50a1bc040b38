package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/domain"
)

// A receiver is what both receivers of the client have in common.
type receiver interface {
	ReceiveMessages(ctx context.Context, most int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	CompleteMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.CompleteMessageOptions) error
	DeadLetterMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.DeadLetterOptions) error
	Close(ctx context.Context) error
}

// A message is one that was received and is not settled yet.
type message struct {
	*azservicebus.ReceivedMessage
	events  []domain.Event
	weight  int
	refused *rejection // if it cannot be stored
	lost    bool       // no longer locked; guarded by ownMessages
}

// A lane brings the messages of one receiver to the hub, in their order: those of a
// session, or of a queue without sessions. At the first sign of trouble with the
// bus it stops receiving, finishes what it has in hand, and ends; whoever started
// it starts another. A receiver that was given up is never received from again: the
// client would go on, but with messages in an order that nobody can tell.
type lane struct {
	in       *Ingestion
	queue    string
	receiver receiver
	logger   *slog.Logger

	session  *ownSession  // nil, or else
	messages *ownMessages // is nil

	stopReceiving context.CancelFunc
	owned         context.Context //nolint:containedctx // ends when the lock of the session is lost
	lose          context.CancelFunc

	began    time.Time
	received int  // messages
	handled  int  // of them
	moving   bool // makes way for another session

	damage    error // of the mailbox, for which the session was given up, or its newer format
	waiting   waitingRoom
	saving    bool // has one of the saves that may be under way
	inHand    *budget
	unsettled chan *message // stored or refused

	// calls is held during a call that makes the client open its link anew if that is
	// lost: a settlement, a renewal. Two at the same time would both do so, and the
	// client would forget one link, with what goes on behind it, for ever.
	calls *semaphore.Weighted

	mu      sync.Mutex
	trouble error // the first
}

func newLane(in *Ingestion, queue string, r receiver) *lane {
	return &lane{
		in: in, queue: queue, receiver: r,
		logger: in.opts.Logger.With("queue", queue),
		inHand: newBudget(in.limits.ReceiverMessages, in.limits.ReceiverBytes),
		calls:  semaphore.NewWeighted(1),
		began:  time.Now(),

		// As many as the budget lets in, so passing on never waits.
		unsettled: make(chan *message, in.limits.ReceiverMessages),
	}
}

// run receives until ctx ends, the session has nothing more to do, or there is
// trouble, which it returns. Messages are held until work ends. When it returns,
// nothing is in hand, and the receiver is still open.
func (l *lane) run(ctx, work context.Context) error {
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	owned, lose := context.WithCancel(context.WithoutCancel(work))
	defer lose()
	holding, release := context.WithCancel(owned) // until the messages are lost, or out of grace
	defer release()
	defer context.AfterFunc(work, release)()
	l.stopReceiving, l.owned, l.lose = stop, owned, lose

	received := make(chan *message, cap(l.unsettled))
	keeping, done := context.WithCancel(owned)
	defer done()
	var working, renewing sync.WaitGroup
	working.Go(func() {
		defer close(received)
		l.receive(receiving, received)
	})
	working.Go(l.settleAll)
	renewing.Go(func() { l.keepLocks(keeping) })

	for m := l.next(holding, received); m != nil; m = l.next(holding, received) {
		l.awaitSave(holding)
		ms := l.gather(m, received)
		l.store(holding, ms)
		l.endSave()
		l.handled += len(ms)
		l.awaitRoom(holding)
		l.endTurn()
	}
	l.leaveWaiting()
	close(l.unsettled)
	working.Wait()
	done()
	renewing.Wait()
	return l.trouble
}

// close gives the session and the messages back to the bus.
func (l *lane) close(ctx context.Context) {
	if err := busclient.Outlast(ctx, busclient.CloseTimeout, l.receiver.Close); err != nil {
		l.logger.Debug("a receiver was not closed in time", "error", err)
	}
}

// fails ends the lane as soon as nothing is in hand.
func (l *lane) fails(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble == nil {
		l.trouble = err
	}
	l.stopReceiving()
}

// receive passes on messages, one at a time, until ctx ends or it fails.
func (l *lane) receive(ctx context.Context, received chan<- *message) {
	for {
		if l.enter(ctx) != nil {
			return
		}
		raw, err := busclient.ReceiveOne(ctx, l.receiver)
		if err != nil {
			l.giveBackRoom(0)
			if ctx.Err() == nil {
				l.cannotReceive(err)
			}
			return
		}
		l.in.metrics.received.WithLabelValues(l.queue).Inc()
		l.in.metrics.inHand.Inc()
		l.received++
		m := l.read(raw)
		l.inHand.weigh(m.weight)
		l.in.inHand.weigh(m.weight)
		if l.messages != nil {
			l.messages.add(m, l.in.opts.Clock())
		}
		received <- m
	}
}

func (l *lane) cannotReceive(err error) {
	l.fails(err)
	if panicked, is := errors.AsType[*busclient.PanicError](err); is {
		l.in.metrics.panics.WithLabelValues(l.queue).Inc()
		l.logger.Error("a message cannot be read; it is delivered again until the bus makes it a dead letter", "error", panicked)
		return
	}
	if l.session != nil { // whose lock ends with the link
		l.sessionLost(err)
	}
}

// enter waits until there is room for a message, in the lane and among all lanes.
func (l *lane) enter(ctx context.Context) error {
	waited, err := l.inHand.enter(ctx)
	if err != nil {
		return err
	}
	waitedToo, err := l.in.inHand.enter(ctx)
	if err != nil {
		l.inHand.leave(0)
		return err
	}
	if waited || waitedToo {
		// Nobody listened to the link meanwhile. If it is lost, another call may be
		// opening it anew, and fail, which ends the lane.
		if err = l.calls.Acquire(ctx, 1); err == nil {
			l.calls.Release(1)
			err = ctx.Err()
		}
		if err != nil {
			l.giveBackRoom(0)
		}
	}
	return err
}

func (l *lane) giveBackRoom(weight int) {
	l.inHand.leave(weight)
	l.in.inHand.leave(weight)
}

// leave ends the work on a message, whatever became of it.
func (l *lane) leave(m *message) {
	if l.messages != nil {
		l.messages.remove(m)
	}
	l.giveBackRoom(m.weight)
	l.in.metrics.inHand.Dec()
}

// leaveAll leaves messages to the bus, which delivers them again.
func (l *lane) leaveAll(ms []*message) {
	for _, m := range ms {
		l.leave(m)
	}
}
