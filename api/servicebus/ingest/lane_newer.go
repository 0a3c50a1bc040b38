package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// isNewerFormat reports whether a newer version keeps the mailbox of a recipient in a
// format that this node does not know. A node of that version can store the events.
func isNewerFormat(err error) bool {
	return err != nil && domain.KindOf(err) == domain.NewerFormat
}

// A waitingRoom holds messages of a queue without sessions that only a node of a newer
// version can store. They stay locked, so that no delivery of theirs is counted, and
// those behind them are served.
type waitingRoom struct {
	messages   []*message
	recipients map[domain.ActorID]bool // whose events failed: what comes for them alone waits behind
	weight     int
	retries    int // in a row
	retryAt    time.Time
}

// isFull reports whether the messages that wait take half of the room of the lane. Then
// the queue waits with them.
func (l *lane) isFull() bool {
	w, limits := &l.waiting, &l.in.limits
	return len(w.messages) > 0 &&
		(len(w.messages) >= min(limits.ReceiverMessages, limits.Messages)/2 || w.weight >= min(limits.ReceiverBytes, limits.Bytes)/2)
}

// waitsBehind reports whether a message has to wait because earlier ones of all its
// recipients do. One that is for others as well is saved, for theirs.
func (w *waitingRoom) waitsBehind(m *message) bool {
	for i := range m.events {
		if !w.recipients[m.events[i].Recipient] {
			return false
		}
	}
	return len(m.events) > 0
}

// wait lets a message wait for a node of a newer version, or for its mailbox to be
// restored.
func (l *lane) wait(m *message, err error) {
	w := &l.waiting
	if w.recipients == nil {
		w.recipients = make(map[domain.ActorID]bool)
		w.retryAt = time.Now().Add(l.in.delay(w.retries + 1))
		if w.retries == 0 {
			l.in.metrics.holding.Inc()
			l.logger.Warn("messages for a mailbox of a newer format wait, locked, for a node of the newer version",
				"recipients", recipients(m.events), "message_id", m.MessageID)
		}
	}
	w.messages = append(w.messages, m)
	w.weight += m.weight
	if failed, ok := errors.AsType[*hub.UnstoredError](err); ok {
		for _, f := range failed.Failures {
			w.recipients[m.events[f.Events[0]].Recipient] = true
		}
	}
}

// retryWaiting stores the messages that wait, in their order, if that is due.
func (l *lane) retryWaiting(ctx context.Context) {
	w := &l.waiting
	if len(w.messages) == 0 || time.Now().Before(w.retryAt) {
		return
	}
	messages := w.messages
	*w = waitingRoom{retries: w.retries + 1}
	for _, m := range messages {
		switch {
		case l.isLost(m) || ctx.Err() != nil: // the bus delivers it again
			l.leave(m)
		case w.waitsBehind(m):
			l.wait(m, nil)
		default:
			l.save(ctx, []*message{m}, damagePatience)
		}
	}
	if len(w.messages) == 0 {
		l.endWaiting()
	}
}

// awaitRoom returns when the messages that wait take less than half of the room of the
// lane, or ctx ends.
func (l *lane) awaitRoom(ctx context.Context) {
	for l.isFull() && ctx.Err() == nil {
		pause(ctx, time.Until(l.waiting.retryAt))
		l.retryWaiting(ctx)
	}
}

// leaveWaiting gives the messages that wait back to the bus.
func (l *lane) leaveWaiting() {
	if len(l.waiting.messages) > 0 {
		l.leaveAll(l.waiting.messages)
		l.endWaiting()
	}
}

func (l *lane) endWaiting() {
	l.waiting = waitingRoom{}
	l.in.metrics.holding.Dec()
}

// nextOfQueue waits for a message of a queue without sessions, and meanwhile retries
// those that wait.
func (l *lane) nextOfQueue(ctx context.Context, received <-chan *message) *message {
	for {
		l.retryWaiting(ctx)
		if len(l.waiting.messages) == 0 {
			return <-received
		}
		due := time.NewTimer(time.Until(l.waiting.retryAt))
		select {
		case m := <-received:
			due.Stop()
			return m
		case <-due.C:
		}
	}
}
