package receiver

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// Settle passes a message on to be completed, or to become a dead letter if it has a
// Rejection.
func (l *Loop[T]) Settle(m *Message[T]) { l.unsettled <- m }

// settleAll ends messages at the bus, one after the other, until there will be no
// more. Each has a time of its own: what the store has is settled also when the
// process is to stop. When one fails, the rest is not tried: the bus delivers them
// again, which costs little.
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

// settleMessage takes a message out of the queue: it is stored, or a dead letter. Its lock is
// given up before anybody can renew it again.
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

// loseLock records that the bus has given a message, or the session, to others.
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

// IsLost reports whether the bus may have given a message to others.
func (l *Loop[T]) IsLost(m *Message[T]) bool {
	return l.owned.Err() != nil || l.messages != nil && l.messages.isLost(m)
}

// loseSession ends all work on a session that may be that of another receiver by
// now. What it stores meanwhile does no harm: both store the same messages in the
// same order, and a handler skips what it has.
func (l *Loop[T]) loseSession(err error) {
	if l.owned.Err() == nil {
		l.Metrics.locksLost.WithLabelValues(l.Queue).Inc()
		l.Logger.Warn("a session is lost; it will be accepted again", "error", err)
	}
	l.lose()
}
