package receiver

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// Settle queues a message for settlement. A message with a Rejection becomes a dead letter; any
// other message is completed.
func (l *Loop[T]) Settle(m *Message[T]) { l.unsettled <- m }

// settleAll settles messages one after another, until the channel is closed. Each settlement has a
// separate timeout, so that stored messages are completed even when the process stops. After a
// failed settlement, settleAll skips the remaining messages. The bus delivers them again, and the
// handler ignores what it has already stored.
func (l *Loop[T]) settleAll() {
	failed := false
	for m := range l.unsettled {
		if failed || l.IsLost(m) {
			l.Metrics.unsettled.WithLabelValues(l.Queue).Inc()
		} else if err := l.settleMessage(m); err != nil {
			l.Metrics.unsettled.WithLabelValues(l.Queue).Inc()
			l.Logger.Debug("a message was not settled", "message_id", m.MessageID, "error", err)
			if busclient.ReasonOf(err) == busclient.LockLost {
				l.loseLock(m, err)
			} else {
				failed = true
				l.Fail(err)
			}
		}
		l.endWork(m)
	}
}

// settleMessage completes or dead-letters a message. It removes the lock of a settled message from
// messageLocks before it releases linkCalls, so that the lock is not renewed again.
func (l *Loop[T]) settleMessage(m *Message[T]) (err error) {
	ctx, cancel := context.WithTimeout(l.owned, l.Limits.Settle)
	defer cancel()
	if err := l.linkCalls.Acquire(ctx, 1); err != nil {
		return err
	}
	defer l.linkCalls.Release(1)
	defer func() {
		if err == nil && l.messages != nil {
			l.messages.removeMessage(m)
		}
	}()
	ctx, span := l.startSettling(ctx, m)
	defer func() { endSettling(span, err) }()
	if m.Rejection == nil {
		return l.receiver.CompleteMessage(ctx, m.ReceivedMessage, nil)
	}
	err = l.receiver.DeadLetterMessage(ctx, m.ReceivedMessage, &azservicebus.DeadLetterOptions{Reason: &m.Rejection.Reason, ErrorDescription: &m.Rejection.Description})
	if err == nil {
		l.Metrics.deadLettered.WithLabelValues(m.Rejection.Reason, l.Queue).Inc()
		l.Handler.DeadLettered(m)
	}
	return err
}

// loseLock records that a lock is lost: of m, or of the whole session. The bus may deliver the
// affected messages to another receiver.
func (l *Loop[T]) loseLock(m *Message[T], err error) {
	if l.session != nil {
		l.Fail(err)
		l.loseSession(err)
		return
	}
	if l.messages.markLost(m) {
		l.Metrics.locksLost.WithLabelValues(l.Queue).Inc()
		l.Logger.Warn("the lock of a message is lost; it will be delivered again", "message_id", m.MessageID)
	}
}

// IsLost reports whether the lock of m is lost. The bus may then deliver m to another receiver.
func (l *Loop[T]) IsLost(m *Message[T]) bool {
	return l.owned.Err() != nil || l.messages != nil && l.messages.isLost(m)
}

// loseSession ends all work on a session that another receiver may have accepted. It is harmless if
// both receivers store a message: they store the same messages in the same order, and a handler
// skips what is already stored.
func (l *Loop[T]) loseSession(err error) {
	if l.owned.Err() == nil {
		l.Metrics.locksLost.WithLabelValues(l.Queue).Inc()
		l.Logger.Warn("a session is lost; it will be accepted again", "error", err)
	}
	l.lose()
}
