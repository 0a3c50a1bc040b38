package servicebus

import (
	"context"
	"time"
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
	case l.damage != nil:
		if n := s.setbacks.add(id); isTold(n) {
			l.logger.Error("the mailbox of a session is damaged; its messages wait, in their order, until it is repaired",
				"error", l.damage, "failures", n, "hint", "messagehub check tells more of the damage")
		}
	case err == nil || l.received > 0:
		s.setbacks.forget(id)
	}
}

// isTold says which setbacks are logged: the first, the second, the fourth and so on.
func isTold(n int) bool { return n > 0 && n&(n-1) == 0 }
