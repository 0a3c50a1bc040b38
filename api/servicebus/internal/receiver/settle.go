package receiver

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// Settle queues a message to be completed, or to become a dead letter if it has
// a Rejection.
func (l *Loop[T]) Settle(m *Message[T]) { l.unsettled <- m }

// settleAll settles messages one after another, until no more will come. Each
// has its own timeout: messages whose events are stored are settled even when
// the process stops. When one fails, the rest is not tried: the bus delivers
// them again, which costs little.
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

// settleMessage completes a message, or makes it a dead letter. It drops the
// lock first, so that the lock is no longer renewed.
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

// loseLock records that the bus may have given a message, or the session, to
// another receiver.
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

// IsLost reports whether the bus may have given a message to another receiver.
func (l *Loop[T]) IsLost(m *Message[T]) bool {
	return l.owned.Err() != nil || l.messages != nil && l.messages.isLost(m)
}

// loseSession ends all work on a session that another receiver may have by now.
// Anything stored meanwhile does no harm: both store the same messages in the
// same order, and a handler skips what is already stored.
func (l *Loop[T]) loseSession(err error) {
	if l.owned.Err() == nil {
		l.Metrics.locksLost.WithLabelValues(l.Queue).Inc()
		l.Logger.Warn("a session is lost; it will be accepted again", "error", err)
	}
	l.lose()
}
