package servicebus

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// errLockLost reports that a message is not settled, since others may have it.
var errLockLost = errors.New("the lock of the message is lost")

// deadLetter takes a message out of the queue that can never be stored.
func (l *lane) deadLetter(m *message) {
	l.settle(m, func(ctx context.Context) error {
		err := l.receiver.DeadLetterMessage(ctx, m.ReceivedMessage, &azservicebus.DeadLetterOptions{Reason: &m.refused.Reason, ErrorDescription: &m.refused.Description})
		if err == nil {
			l.in.metrics.deadLettered.WithLabelValues(m.refused.Reason, l.queue).Inc()
			l.logger.Error("a message can never be stored and is a dead letter now; whom it was for will miss it", "recipients", recipients(m.events), "message_id", m.MessageID, "reason", m.refused.Reason)
		}
		return err
	})
}

// settle ends a message at the bus, in the background. It has a time of its own: what
// the store has is settled also when the process is to stop. If it fails, the bus
// delivers the message again, which costs little, so it is not insisted upon.
func (l *lane) settle(m *message, how func(context.Context) error) {
	l.settling.Go(func() error {
		defer l.leave(m)
		err := errLockLost
		if !l.isLost(m) {
			ctx, cancel := context.WithTimeout(l.owned, l.in.limits.Settle)
			defer cancel()
			if err = l.links.Acquire(ctx, 1); err == nil {
				err = how(ctx)
				l.links.Release(1)
			}
		}
		if err == nil {
			return nil
		}
		l.in.metrics.unsettled.WithLabelValues(l.queue).Inc()
		l.logger.Debug("a message was not settled", "message_id", m.MessageID, "error", err)
		switch {
		case errors.Is(err, errLockLost):
		case code(err) == azservicebus.CodeLockLost:
			l.lockLost(m, err)
		default:
			l.fails(err)
		}
		return nil
	})
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
