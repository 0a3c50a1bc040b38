package bus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A busModel is a simple model of the bus. It has no store and no pending writes, and searches lists from the front.
type busModel struct {
	now    time.Time
	queues map[string]*modelQueue // all queues, including dead-letter queues, by lower-case path
	order  int                    // last order number of a lock
	seen   map[string]time.Time   // ids of messages sent to the topic, each with the end of its duplicate window
	topic  int64                  // newest sequence number of the topic
	held   []*modelMessage        // scheduled messages of the topic
}

type modelQueue struct {
	path        string
	config      Entity
	last        int64
	messages    []*modelMessage
	sessions    map[string]time.Time // locked sessions, each with the end of its lock
	deadLetters *modelQueue          // dead-letter queue; nil if this queue is a dead-letter queue
}

type modelMessage struct {
	body, session, subject string
	hasSession             bool
	seq                    int64
	count                  uint32
	state                  State
	due, expires           time.Time
	ttl                    time.Duration
	reason                 any
	locked                 bool
	until                  time.Time // end of the lock of the message
	order                  int
	token                  LockToken
}

func newModel(entities ...Entity) *busModel {
	m := &busModel{now: start, queues: map[string]*modelQueue{}, seen: map[string]time.Time{}}
	for _, e := range entities {
		if e.Kind == Topic {
			continue
		}
		deadLetters := &modelQueue{path: e.Path + "/$DeadLetterQueue", config: Entity{LockDuration: e.LockDuration}, sessions: map[string]time.Time{}}
		m.queues[e.Path] = &modelQueue{path: e.Path, config: e, sessions: map[string]time.Time{}, deadLetters: deadLetters}
		m.queues[deadLetters.path] = deadLetters
	}
	return m
}

func (q *modelQueue) insertMessage(m modelMessage) *modelMessage {
	q.last++
	m.seq = q.last
	q.messages = append(q.messages, &m)
	return &m
}

func (q *modelQueue) dropMessage(m *modelMessage) {
	q.messages = slices.DeleteFunc(q.messages, func(x *modelMessage) bool { return x == m })
}

func (q *modelQueue) buryMessage(m *modelMessage, reason any) {
	q.dropMessage(m)
	deadLetters := q.deadLetters
	if deadLetters == nil {
		deadLetters = q
	}
	dead := *m
	dead.state, dead.locked, dead.expires, dead.due = Active, false, time.Time{}, time.Time{}
	if reason != "" {
		dead.reason = reason
	}
	deadLetters.insertMessage(dead)
}

func (q *modelQueue) findMessage(want func(*modelMessage) bool) *modelMessage {
	i := slices.IndexFunc(q.messages, want)
	if i < 0 {
		return nil
	}
	return q.messages[i]
}

// addMessage stores a message in a queue.
func (m *busModel) addMessage(q *modelQueue, x modelMessage) {
	x.state, x.expires = Active, time.Time{}
	ttl := x.ttl
	if d := q.config.DefaultTTL; d != 0 && (ttl == 0 || d < ttl) {
		ttl = d
	}
	if ttl != 0 {
		x.expires = m.now.Add(ttl)
	}
	q.insertMessage(x)
}

func (m *busModel) publishCopies(x modelMessage) {
	m.addMessage(m.queues["t/subscriptions/all"], x)
	if x.subject == "x" {
		m.addMessage(m.queues["t/subscriptions/some"], x)
	}
}

func (m *busModel) sendMessage(path string, id string, x modelMessage) {
	if path == "t" {
		if m.seen[id].After(m.now) {
			return
		}
		m.seen[id] = m.now.Add(duplicateWindow)
	}
	switch {
	case !x.due.After(m.now) && path == "t":
		m.topic++
		m.publishCopies(x)
	case !x.due.After(m.now):
		m.addMessage(m.queues[path], x)
	case path == "t":
		m.topic++
		x.seq = m.topic
		m.held = append(m.held, &x)
	default:
		x.state = Scheduled
		m.queues[path].insertMessage(x)
	}
}

// takeMessage locks and returns the first unlocked message of a queue or session.
func (m *busModel) takeMessage(q *modelQueue, session *string) *modelMessage {
	x := q.findMessage(func(x *modelMessage) bool {
		return x.state == Active && !x.locked && (session == nil || x.session == *session)
	})
	if x != nil {
		m.lockMessage(q, x)
	}
	return x
}

func (m *busModel) lockMessage(q *modelQueue, x *modelMessage) {
	m.order++
	x.locked, x.order, x.until = true, m.order, time.Time{}
	if !q.config.RequiresSession {
		x.until = m.now.Add(q.config.LockDuration)
	}
}

// nextSession returns the unlocked session with the oldest active message.
func (q *modelQueue) nextSession() (string, bool) {
	x := q.findMessage(func(x *modelMessage) bool {
		_, held := q.sessions[x.session]
		return x.state == Active && !held
	})
	if x == nil {
		return "", false
	}
	return x.session, true
}

func (m *busModel) freeMessage(q *modelQueue, x *modelMessage) {
	x.locked = false
	m.expireMessage(q, x)
}

func (m *busModel) expireMessage(q *modelQueue, x *modelMessage) {
	if x.expires.IsZero() || x.expires.After(m.now) || x.locked || x.state == Scheduled {
		return
	}
	if q.config.DeadLetterOnExpiry {
		q.buryMessage(x, ReasonExpired)
	} else {
		q.dropMessage(x)
	}
}

func (m *busModel) settleMessage(q *modelQueue, x *modelMessage, how Settlement) {
	switch how.Outcome {
	case Complete:
		q.dropMessage(x)
	case Abandon:
		m.abandonMessage(q, x)
	case Release:
		m.freeMessage(q, x)
	case Defer:
		x.state = Deferred
		m.freeMessage(q, x)
	case DeadLetter:
		q.buryMessage(x, how.Reason)
	}
}

func (m *busModel) abandonMessage(q *modelQueue, x *modelMessage) {
	if q.deadLetters != nil {
		if x.count++; x.count >= q.config.MaxDeliveryCount {
			q.buryMessage(x, ReasonDeliveries)
			return
		}
	}
	m.freeMessage(q, x)
}

func (m *busModel) releaseSession(q *modelQueue, session string) {
	delete(q.sessions, session)
	for _, x := range q.messages {
		x.locked = x.locked && x.session != session
	}
	m.expireAll(q)
}

// forgetLocks releases all locks, as a restart does.
func (m *busModel) forgetLocks() {
	for _, q := range m.sortedQueues() {
		clear(q.sessions)
		for _, x := range q.messages {
			x.locked = false
		}
		m.expireAll(q)
	}
}

// expireAll expires messages whose time to live ended while they were locked, oldest first.
func (m *busModel) expireAll(q *modelQueue) {
	for _, x := range slices.SortedStableFunc(slices.Values(q.messages), func(a, b *modelMessage) int { return a.expires.Compare(b.expires) }) {
		m.expireMessage(q, x)
	}
}

func (m *busModel) sortedQueues() []*modelQueue {
	var all []*modelQueue
	for _, q := range m.queues {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *modelQueue) int { return cmp.Compare(a.path, b.path) })
	return all
}

// advanceTime moves the time forward by d. It stops whenever a lock or message expires or a scheduled message is due,
// and applies the change.
func (m *busModel) advanceTime(d time.Duration) {
	end := m.now.Add(d)
	for {
		at, happen := end.Add(1), func() {}
		sooner := func(t time.Time, f func()) {
			if !t.IsZero() && t.Before(at) {
				at, happen = t, f
			}
		}
		for _, q := range m.sortedQueues() {
			for session, until := range q.sessions {
				sooner(until, func() { m.loseSession(q, session) })
			}
			inOrder := slices.SortedFunc(slices.Values(q.messages), func(a, b *modelMessage) int { return cmp.Compare(a.order, b.order) })
			for _, x := range inOrder {
				if x.locked {
					sooner(x.until, func() { m.abandonMessage(q, x) })
				}
			}
			for _, x := range q.messages {
				switch {
				case x.state == Scheduled:
					sooner(x.due, func() { q.dropMessage(x); m.addMessage(q, *x) })
				case !x.locked:
					sooner(x.expires, func() { m.expireMessage(q, x) })
				}
			}
		}
		for i, x := range m.held {
			sooner(x.due, func() { m.held = slices.Delete(m.held, i, i+1); m.publishCopies(*x) })
		}
		if at.After(end) {
			break
		}
		m.now = at
		happen()
	}
	m.now = end
}

func (m *busModel) loseSession(q *modelQueue, session string) {
	delete(q.sessions, session)
	for _, x := range slices.Clone(q.messages) {
		if x.locked && x.session == session {
			m.abandonMessage(q, x)
		}
	}
}

// describeQueue returns the messages of a queue as text.
func (q *modelQueue) describeQueue() string {
	var s strings.Builder
	for _, x := range q.messages {
		fmt.Fprintf(&s, "%d %s session=%v,%s count=%d state=%d expires=%v reason=%v\n", x.seq, x.body, x.hasSession, x.session, x.count, x.state, x.expires.UnixMilli(), x.reason)
	}
	return s.String()
}

func describeMessages(messages []Message) string {
	var s strings.Builder
	for _, x := range messages {
		session := ""
		if x.SessionID != nil {
			session = *x.SessionID
		}
		fmt.Fprintf(&s, "%d %s session=%v,%s count=%d state=%d expires=%v reason=%v\n", x.SequenceNumber, x.Sections, x.SessionID != nil, session,
			x.DeliveryCount, x.State, x.ExpiresAt.UnixMilli(), Delivery{Message: x}.propertyOf(propertyReason))
	}
	return s.String()
}

func (q *modelQueue) countState(s State) (n int64) {
	for _, x := range q.messages {
		if x.state == s {
			n++
		}
	}
	return n
}
