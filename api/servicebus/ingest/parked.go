package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// isNewerFormat reports whether err means that a newer version of the hub has written the mailbox.
// A node of that version can store the events.
func isNewerFormat(err error) bool {
	return err != nil && domain.KindOf(err) == domain.NewerFormat
}

// parkedMessages holds the messages that only a node of a newer version can store. It is used only
// for queues without sessions. The messages stay locked, so that the bus does not count further
// deliveries. Meanwhile, messages for other recipients are stored.
type parkedMessages struct {
	messages   []*busMessage
	recipients map[domain.ActorID]bool // recipients whose events failed; a later message to only these recipients waits as well
	weight     int
	retries    int // consecutive retries
	retryAt    time.Time
}

// IsFull implements receiver.Parker. It reports whether the parked messages use half of the loop's
// capacity. If they do, the queue waits.
func (s *eventStore) IsFull() bool {
	w, limits := &s.parked, &s.in.limits
	return len(w.messages) > 0 &&
		(len(w.messages) >= min(limits.ReceiverMessages, limits.Messages)/2 || w.weight >= min(limits.ReceiverBytes, limits.Bytes)/2)
}

// waitsBehind reports whether messages to all recipients of m are parked, so that m must wait too.
// A message that also has other recipients is saved, so that their events are stored.
func (p *parkedMessages) waitsBehind(m *busMessage) bool {
	for i := range m.Content.events {
		if !p.recipients[m.Content.events[i].Recipient] {
			return false
		}
	}
	return len(m.Content.events) > 0
}

// parkMessage makes a message wait for a node of a newer version. err, if not nil, is the error of
// the failed save.
func (s *eventStore) parkMessage(m *busMessage, err error) {
	w := &s.parked
	if w.recipients == nil {
		w.recipients = make(map[domain.ActorID]bool)
		w.retryAt = time.Now().Add(s.in.retryDelay(w.retries + 1))
		if w.retries == 0 {
			s.in.metrics.holding.Inc()
			s.logger.Warn("messages for a mailbox of a newer format wait, locked, for a node of the newer version",
				"recipients", recipientsForLog(m.Content.events), "message_id", m.MessageID)
		}
	}
	w.messages = append(w.messages, m)
	w.weight += m.Weight
	if failed, ok := errors.AsType[*hub.UnstoredError](err); ok {
		for _, f := range failed.Failures {
			w.recipients[m.Content.events[f.Events[0]].Recipient] = true
		}
	}
}

// RetryAt implements receiver.Parker.
func (s *eventStore) RetryAt() (at time.Time, parked bool) {
	return s.parked.retryAt, len(s.parked.messages) > 0
}

// Retry implements receiver.Parker. It stores the parked messages in order, unless it is too early
// for a retry.
func (s *eventStore) Retry(ctx context.Context) {
	w := &s.parked
	if len(w.messages) == 0 || time.Now().Before(w.retryAt) {
		return
	}
	messages := w.messages
	*w = parkedMessages{retries: w.retries + 1}
	for _, m := range messages {
		switch {
		case s.loop.IsLost(m) || ctx.Err() != nil: // the bus delivers the message again
			s.loop.Abandon(m)
		case w.waitsBehind(m):
			s.parkMessage(m, nil)
		default:
			s.save(ctx, []*busMessage{m}, damagePatience)
		}
	}
	if len(w.messages) == 0 {
		s.endParking()
	}
}

// AbandonParked implements receiver.Parker. It returns the parked messages to the bus.
func (s *eventStore) AbandonParked() {
	if len(s.parked.messages) > 0 {
		s.loop.Abandon(s.parked.messages...)
		s.endParking()
	}
}

func (s *eventStore) endParking() {
	s.parked = parkedMessages{}
	s.in.metrics.holding.Dec()
}
