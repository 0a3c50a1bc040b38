package ingest

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// settleAll ends messages at the bus, one after the other, until there will be no
// more. Each has a time of its own: what the store has is settled also when the
// process is to stop. When one fails, the rest is not tried: the bus delivers them
// again, which costs little.
func (l *lane) settleAll() {
	failed := false
	for m := range l.unsettled {
		if failed || l.isLost(m) {
			l.in.metrics.unsettled.WithLabelValues(l.queue).Inc()
		} else if err := l.settle(m); err != nil {
			l.in.metrics.unsettled.WithLabelValues(l.queue).Inc()
			l.logger.Debug("a message was not settled", "message_id", m.MessageID, "error", err)
			if busclient.ReasonOf(err) == busclient.LockLost {
				l.lockLost(m, err)
			} else {
				failed = true
				l.fails(err)
			}
		}
		l.leave(m)
	}
}

// settle takes a message out of the queue: it is stored, or a dead letter. Its lock is
// given up before anybody can renew it again.
func (l *lane) settle(m *message) (err error) {
	ctx, cancel := context.WithTimeout(l.owned, l.in.limits.Settle)
	defer cancel()
	if err := l.calls.Acquire(ctx, 1); err != nil {
		return err
	}
	defer l.calls.Release(1)
	defer func() {
		if err == nil && l.messages != nil {
			l.messages.remove(m)
		}
	}()
	if m.refused == nil {
		return l.receiver.CompleteMessage(ctx, m.ReceivedMessage, nil)
	}
	err = l.receiver.DeadLetterMessage(ctx, m.ReceivedMessage, &azservicebus.DeadLetterOptions{Reason: &m.refused.Reason, ErrorDescription: &m.refused.Description})
	if err == nil {
		l.in.metrics.deadLettered.WithLabelValues(m.refused.Reason, l.queue).Inc()
		l.logger.Error("a message cannot be stored and is a dead letter now; whom it was for will miss it", "recipients", recipients(m.events), "message_id", m.MessageID, "reason", m.refused.Reason)
	}
	return err
}

// lockLost notes that the bus has given a message, or the session, to others.
func (l *lane) lockLost(m *message, err error) {
	if l.session != nil {
		l.fails(err)
		l.sessionLost(err)
		return
	}
	if l.messages.lose(m) {
		l.in.metrics.locksLost.WithLabelValues(l.queue).Inc()
		l.logger.Warn("the lock of a message is lost; it will be delivered again", "message_id", m.MessageID)
	}
}

// isLost reports whether the bus may have given a message to others.
func (l *lane) isLost(m *message) bool {
	return l.owned.Err() != nil || l.messages != nil && l.messages.isLost(m)
}

// sessionLost ends all work on a session that may be that of another receiver by
// now. What it stores meanwhile is no harm: both store the same events in the same
// order, and the store skips what it has.
func (l *lane) sessionLost(err error) {
	if l.owned.Err() == nil {
		l.in.metrics.locksLost.WithLabelValues(l.queue).Inc()
		l.logger.Warn("a session is lost; it will be accepted again", "error", err)
	}
	l.lose()
}
