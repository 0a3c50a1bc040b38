package ingest

import (
	"context"
	"time"
)

// gather returns a message with all that have come meanwhile.
func (l *lane) gather(m *message, received <-chan *message) []*message {
	var ms []*message
	for m != nil {
		ms = append(ms, m)
		select {
		case m = <-received:
		default:
			m = nil
		}
	}
	return ms
}

// awaitSave waits until few enough saves are under way. What comes meanwhile is saved
// along, which is worth more than many small saves that slow each other down. But it
// does not wait for long: others may be in trouble that is not its own.
func (l *lane) awaitSave(ctx context.Context) {
	const longest = 250 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	l.saving = l.in.saves.Acquire(ctx, 1) == nil
}

// endSave lets another save begin.
func (l *lane) endSave() {
	if l.saving {
		l.in.saves.Release(1)
	}
	l.saving = false
}

// next waits for a message. A session that has none for a while is left, and sooner
// if others wait.
func (l *lane) next(ctx context.Context, received <-chan *message) *message {
	if l.session == nil {
		return l.nextOfQueue(ctx, received)
	}
	select {
	case m := <-received:
		return m
	default:
	}
	const moment = 20 * time.Millisecond
	linger := time.NewTimer(l.in.limits.Linger)
	defer linger.Stop()
	wanted := l.session.places.wanted()
	var last <-chan time.Time
	for {
		select {
		case m := <-received:
			return m
		case <-linger.C:
			l.stopReceiving()
		case <-wanted:
			wanted, last = nil, time.After(moment)
		case <-last:
			if !l.makeWay() {
				wanted = l.session.places.wanted()
			}
		}
	}
}

// endTurn leaves the session to others that wait, after it was served for a while.
func (l *lane) endTurn() {
	if l.session != nil && (time.Since(l.began) > l.in.limits.Turn || l.handled > l.in.limits.TurnMessages) {
		l.makeWay()
	}
}

func (l *lane) makeWay() bool {
	if !l.moving && l.session.places.makeWay() {
		l.moving = true
		l.stopReceiving()
	}
	return l.moving
}
