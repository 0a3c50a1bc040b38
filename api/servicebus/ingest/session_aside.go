package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// setAside keeps the link of a session open for a while, so that nobody accepts it, and
// closes it. Meanwhile the session leaves its place, so that others do not wait with it.
func (s *sessions) setAside(ctx context.Context, l *lane, wait time.Duration) {
	select {
	case s.aside <- struct{}{}:
		s.places.leave(l.moving)
		pause(ctx, wait)
		l.close(ctx)
		<-s.aside
	default: // so many that they have to be set aside in their places
		pause(ctx, wait)
		l.close(ctx)
		s.places.leave(l.moving)
	}
}

// learn notes whether a session can be served.
func (s *sessions) learn(l *lane, err error) {
	id := l.session.id
	switch {
	case isNewerFormat(l.damage):
		if n := s.setbacks.certain(id); isTold(n) {
			l.logger.Warn("a newer version keeps the mailbox of a session; its messages wait, in their order, for a node of that version",
				"error", l.damage, "failures", n)
		}
	case l.damage != nil:
		if n := s.setbacks.certain(id); isTold(n) {
			l.logger.Error("the mailbox of a session is damaged; its messages wait, in their order, until it is repaired",
				"error", l.damage, "failures", n, "hint", "messagehub check tells more of the damage")
		}
	case errors.Is(err, busclient.ErrLinkLost) && l.received == 0:
		if n := s.setbacks.suspected(id); isTold(n) {
			l.logger.Error("a session cannot be received from: its link ends before a message comes, each time; it is tried again after pauses",
				"failures", n, "hint", "its first message may be one that the client cannot decode, with a decimal or a char; take that out of the queue with another client while no hub runs")
		}
	case err == nil || l.received > 0:
		s.setbacks.forget(id)
	}
}

// isTold says which setbacks are logged: the first, the second, the fourth and so on.
func isTold(n int) bool { return n > 0 && n&(n-1) == 0 }
