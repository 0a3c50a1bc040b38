package objectevents

import (
	"context"
	"time"
)

// parkedTasks are messages with events that cannot be stored at present. They stay locked, so that
// the bus counts no further deliveries, and later messages are stored.
type parkedTasks struct {
	tasks    []*task
	weight   int
	failures int // number of consecutive attempts that did not store all parked messages
	retryAt  time.Time
}

// parkMessage holds a message until it is retried.
func (s *eventStore) parkMessage(t *task, cause error) {
	p := &s.parked
	if len(p.tasks) == 0 {
		p.failures++
		p.retryAt = time.Now().Add(s.receiver.retryDelay(p.failures))
		if n := p.failures; n&(n-1) == 0 { // failures 1, 2, 4, 8 and so on are logged
			s.receiver.opts.Logger.Warn("events of objects cannot be stored; their messages are held, and tried again", "error", cause, "message_id", t.MessageID, "failures", n)
		}
	}
	p.tasks = append(p.tasks, t)
	p.weight += t.Weight
}

// RetryAt implements receiver.Parker.
func (s *eventStore) RetryAt() (at time.Time, parked bool) {
	return s.parked.retryAt, len(s.parked.tasks) > 0
}

// Retry implements receiver.Parker.
func (s *eventStore) Retry(ctx context.Context) {
	p := &s.parked
	if len(p.tasks) == 0 || time.Now().Before(p.retryAt) {
		return
	}
	tasks := p.tasks
	*p = parkedTasks{failures: p.failures}
	held := tasks[:0]
	for _, t := range tasks {
		if s.loop.IsLost(t.busMessage) || ctx.Err() != nil { // the bus delivers the message again
			s.loop.Abandon(t.busMessage)
			continue
		}
		held = append(held, t)
	}
	s.receiver.metrics.retries.Inc()
	s.tryStore(ctx, held)
	if len(p.tasks) == 0 {
		p.failures = 0
	}
}

// IsFull implements receiver.Parker. Parked messages may use half of the loop's capacity; the other
// half is for new messages.
func (s *eventStore) IsFull() bool {
	return len(s.parked.tasks) >= maxMessages/2 || s.parked.weight >= maxBytes/2
}

// AbandonParked implements receiver.Parker.
func (s *eventStore) AbandonParked() {
	for _, t := range s.parked.tasks {
		s.loop.Abandon(t.busMessage)
	}
	s.parked = parkedTasks{}
}
