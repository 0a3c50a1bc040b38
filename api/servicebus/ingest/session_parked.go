package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
)

// parkSession keeps the link of a session open for a while, so that no receiver accepts the
// session, and then closes the link. A parked session does not use a slot, unless too many sessions
// are parked.
func (s *sessions) parkSession(ctx context.Context, l *receiver.Loop[messageEvents], wait time.Duration) {
	select {
	case s.parked <- struct{}{}:
		s.slots.returnSessionSlot(l.MadeWay())
		busclient.Sleep(ctx, wait)
		l.Close(ctx)
		<-s.parked
	default: // too many sessions are parked, so this session keeps its slot
		busclient.Sleep(ctx, wait)
		l.Close(ctx)
		s.slots.returnSessionSlot(l.MadeWay())
	}
}

// recordResult records whether a session could be served.
func (s *sessions) recordResult(id string, store *eventStore, err error) {
	received := store.loop.Received()
	switch {
	case isNewerFormat(store.damage):
		if n := s.backoff.addCertain(id); isLogged(n) {
			store.logger.Warn("a newer version keeps the mailbox of a session; its messages wait, in their order, for a node of that version",
				"error", store.damage, "failures", n)
		}
	case store.damage != nil:
		if n := s.backoff.addCertain(id); isLogged(n) {
			store.logger.Error("the mailbox of a session is damaged; its messages wait, in their order, until it is repaired",
				"error", store.damage, "failures", n, "hint", "messagehub check shows the damage")
		}
	case errors.Is(err, busclient.ErrLinkLost) && received == 0:
		if n := s.backoff.addSuspected(id); isLogged(n) {
			store.logger.Error("a session cannot be received from: its link always ends before a message arrives; it is retried after pauses",
				"failures", n, "hint", "its first message may be one that the client cannot decode, with a decimal or a char; take that out of the queue with another client while no hub runs")
		}
	case err == nil || received > 0:
		s.backoff.forget(id)
	}
}

// isLogged reports whether setback number n is logged: only setbacks 1, 2, 4, 8 and so on are.
func isLogged(n int) bool { return n > 0 && n&(n-1) == 0 }
