package bus

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

const (
	maxPeek      = 1000
	maxPeekBytes = 4 << 20
	maxSequences = 1000
)

// Peek returns committed messages in the order of their numbers, starting at PeekOptions.From, without locking them.
// The messages may be active, deferred or scheduled; with a session id, scheduled messages are skipped. Peek may return
// fewer messages than requested, but returns none only if there are no more. A locked message is included even if it
// has expired.
func (b *Bus) Peek(path string, o PeekOptions) ([]Message, error) {
	b.lockAndCatchUp()
	q, err := b.findQueue(path)
	b.scheduleAndUnlock()
	if err != nil {
		return nil, err
	}
	p := peekResult{queue: q, limit: min(max(o.Max, 0), maxPeek)}
	err = b.journal.store.View(func(r disk.Reader) error {
		if o.SessionID == nil {
			p.addAll(r, o.From)
		} else {
			p.addSession(r, *o.SessionID, o.From)
		}
		return p.failure
	})
	return p.messages, err
}

type peekResult struct {
	queue    *messageQueue
	limit    int
	bytes    int
	messages []Message
	failure  error
}

// addRecord decodes a stored message and adds it to the result. It returns false if the result is full.
func (p *peekResult) addRecord(record []byte) bool {
	m, err := decodeMessage(bytes.Clone(record))
	if err != nil {
		p.failure = err
		return false
	}
	p.messages = append(p.messages, m)
	p.bytes += len(record)
	return len(p.messages) < p.limit && p.bytes < maxPeekBytes
}

func (p *peekResult) addAll(r disk.Reader, from int64) {
	if p.limit > 0 {
		r.Scan(messageKey(p.queue.id, from), endOfPrefix(newKey(tableMessage, p.queue.id, 0)), func(_, v []byte) bool { return p.addRecord(v) })
	}
}

// addSession adds the active and deferred messages of a session, sorted by number.
func (p *peekResult) addSession(r disk.Reader, session string, from int64) {
	var sequences []int64
	for _, table := range []byte{tableLane, tableDeferred} {
		found := 0
		r.Scan(sessionKey(table, p.queue.id, session, from), endOfPrefix(sessionPrefix(table, p.queue.id, session)), func(k, _ []byte) bool {
			sequences = append(sequences, lastNumber(k))
			found++
			return found < p.limit
		})
	}
	slices.Sort(sequences)
	for _, seq := range sequences {
		if v := r.Get(messageKey(p.queue.id, seq)); v == nil || len(p.messages) == p.limit || !p.addRecord(v) {
			return
		}
	}
}

// ReceiveDeferred delivers deferred messages by sequence number. It fails with ErrNotFound if a message does not exist.
// In an entity with sessions, the session must be locked. A dead letter need not be deferred, so that a client can
// receive it without receiving all earlier dead letters.
func (b *Bus) ReceiveDeferred(path string, wanted []int64, mode Mode, session *string, done func([]Delivery, error)) {
	var out []Delivery
	b.runOperation(func(err error) { done(out, err) }, func() error {
		q, l, err := b.deferredOf(path, session)
		if err != nil {
			return err
		}
		if len(wanted) == 0 || len(wanted) > maxSequences {
			return fmt.Errorf("%w: ask for 1 to %d sequence numbers, not %d", ErrInvalid, maxSequences, len(wanted))
		}
		seen := map[int64]bool{}
		messages, places := make([]Message, len(wanted)), make([]messageRef, len(wanted))
		for i, seq := range wanted {
			m, p, ok := b.readMessage(q, seq)
			if !ok || seen[seq] || !q.canFetch(&m) || q.locked[seq] != nil || l != nil && p.lane != l.name || hasExpired(&m, b.clock.Now()) {
				return fmt.Errorf("%w: no free message is deferred with sequence number %d", ErrNotFound, seq)
			}
			messages[i], places[i], seen[seq] = m, p, true
		}
		for i, m := range messages {
			d := Delivery{Message: m}
			if mode == ReceiveAndDelete {
				b.removeMessage(q, places[i], time.Time{})
			} else {
				from := l
				if m.State == Active {
					from = b.openLane(q, places[i].lane)
				}
				k := b.lockMessage(q, from, places[i])
				d.Token, d.LockedUntil = k.token, k.until
				if l != nil {
					d.LockedUntil = q.holderOf(l.name).until
				}
			}
			out = append(out, d)
		}
		return nil
	})
}

// canFetch reports whether a message can be received by its sequence number.
func (q *messageQueue) canFetch(m *Message) bool {
	return m.State == Deferred || q.part == deadLetterPart && m.State == Active
}

func (b *Bus) deferredOf(path string, session *string) (*messageQueue, *deliveryLane, error) {
	q, err := b.findReceivable(path)
	switch {
	case err != nil:
		return nil, nil, err
	case !q.hasSessions():
		return q, nil, nil
	case session == nil:
		return nil, nil, fmt.Errorf("%w: the entity requires sessions; receive with the session that is held", ErrNotAllowed)
	case q.holderOf(*session) == nil:
		return nil, nil, ErrSessionLockLost
	}
	return q, q.lanes[*session], nil
}

// Sessions lists the sessions with active messages. If since is not zero, it instead lists the sessions whose state
// changed after since.
func (b *Bus) Sessions(path string, since time.Time, skip, top int) ([]string, error) {
	b.lockAndCatchUp()
	q, err := b.sessionQueue(path)
	b.scheduleAndUnlock()
	if err != nil {
		return nil, err
	}
	found, limit := []string{}, min(max(top, 0), maxPeek)
	err = b.journal.store.View(func(r disk.Reader) error {
		if !since.IsZero() {
			prefix := newKey(tableState, q.id, 0)
			r.Scan(prefix, endOfPrefix(prefix), func(k, v []byte) bool {
				if readNumber(v) >= since.UnixMilli() {
					if skip--; skip < 0 && len(found) < limit {
						found = append(found, string(k[len(prefix):]))
					}
				}
				return len(found) < limit
			})
			return nil
		}
		for from := newKey(tableLane, q.id, 0); len(found) < limit; {
			var session *string
			r.Scan(from, endOfPrefix(newKey(tableLane, q.id, 0)), func(k, _ []byte) bool {
				s := sessionOf(k)
				session = &s
				return false
			})
			if session == nil {
				return nil
			}
			if skip--; skip < 0 {
				found = append(found, *session)
			}
			from = sessionKey(tableLane, q.id, *session, math.MaxInt64)
		}
		return nil
	})
	return found, err
}
