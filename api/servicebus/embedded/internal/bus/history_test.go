package bus

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// The durations have different milliseconds, and every step takes one millisecond. Therefore no two changes happen at
// the same time, except within one batch.
const (
	duplicateWindow = 61*time.Second + 300*time.Millisecond
	oddTTL          = 17*time.Second + 450*time.Millisecond
	oddSchedule     = 11*time.Second + 600*time.Millisecond
)

var modelled = []Entity{
	{Path: "plain", Kind: Queue, LockDuration: 30 * time.Second, MaxDeliveryCount: 2},
	{Path: "sessions", Kind: Queue, RequiresSession: true, LockDuration: 20*time.Second + 150*time.Millisecond, MaxDeliveryCount: 3, DefaultTTL: 90*time.Second + 750*time.Millisecond, DeadLetterOnExpiry: true},
	{Path: "t", Kind: Topic, DuplicateWindow: duplicateWindow},
	{Path: "t/subscriptions/all", Kind: Subscription, LockDuration: 30 * time.Second, MaxDeliveryCount: 10},
	{Path: "t/subscriptions/some", Kind: Subscription, LockDuration: 30 * time.Second, MaxDeliveryCount: 10, DefaultTTL: oddTTL},
}

// A busHistory runs the same random operations on a bus and on its model.
type busHistory struct {
	*rapid.T
	*busFixture
	model   *busModel
	paths   []string // paths of the entities that the history uses
	bodies  int
	holders map[string]*testConsumer // consumer that has locked each session
	plain   map[string]*testConsumer // consumer of each entity without sessions, by path
}

func TestBus_BehavesLikeItsModel(t *testing.T) {
	for _, paths := range [][]string{
		{"plain", "sessions", "t", "t/subscriptions/all", "t/subscriptions/some"}, {"sessions"}, {"plain"}, {"t", "t/subscriptions/some"},
	} {
		t.Run(strings.Join(paths, ","), func(t *testing.T) { compareHistories(t, paths) })
	}
}

func compareHistories(t *testing.T, paths []string) {
	rapid.Check(t, func(r *rapid.T) {
		w := &busFixture{t: r, clock: newClock(), store: disk.NewMemory()}
		w.openBus()
		h := &busHistory{T: r, busFixture: w, model: newModel(modelled...), paths: paths}
		for _, e := range modelled {
			w.createEntity(e)
		}
		w.requireDone(func(done func(error)) { w.bus.DeleteRule("t/subscriptions/some", DefaultRule, done) })
		w.requireDone(func(done func(error)) {
			w.bus.AddRule("t/subscriptions/some", Rule{Name: "x", Filter: Filter{SQL: "sys.Label = 'x'"}}, done)
		})
		h.startRun()
		r.Repeat(map[string]func(*rapid.T){
			"":             h.compareAll,
			"send":         h.sendSome,
			"send again":   h.sendSome,
			"receive":      h.receiveSome,
			"receive more": h.receiveSome,
			"settle":       h.settleOne,
			"settle more":  h.settleOne,
			"accept":       h.acceptSome,
			"release":      h.releaseOne,
			"renew":        h.renewOne,
			"deferred":     h.receiveDeferred,
			"cancel":       h.cancelOne,
			"wait":         h.waitSome,
			"restart":      h.restartAll,
		})
		require.NoError(t, w.bus.Close())
	})
}

func (h *busHistory) startRun() {
	h.holders, h.plain = map[string]*testConsumer{}, map[string]*testConsumer{}
	for _, q := range h.model.sortedQueues() {
		if !q.config.RequiresSession {
			h.plain[q.path] = h.newReceiver(q.path, PeekLock)
		}
	}
}

// usedPaths returns the paths that the history uses.
func (h *busHistory) usedPaths(paths ...string) []string {
	return slices.DeleteFunc(paths, func(p string) bool {
		p, _, _ = strings.Cut(p, "/$")
		return !slices.Contains(h.paths, p)
	})
}

// passMillisecond advances the time by a millisecond, so that each step has a different time.
func (h *busHistory) passMillisecond() { h.advanceBoth(time.Millisecond) }

func (h *busHistory) advanceBoth(d time.Duration) {
	h.advanceTime(d)
	h.model.advanceTime(d)
}

func (h *busHistory) sendSome(r *rapid.T) {
	h.passMillisecond()
	path := rapid.SampledFrom(h.usedPaths("plain", "sessions", "t")).Draw(r, "to")
	var batch []Message
	for range rapid.IntRange(1, 3).Draw(r, "messages") {
		h.bodies++
		body := fmt.Sprint(h.bodies)
		m := Message{ID: body, Sections: []byte(body)}
		x := modelMessage{body: body}
		if path == "sessions" {
			x.session, x.hasSession = rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "session"), true
			m.SessionID = &x.session
		}
		if path == "t" {
			m.ID = rapid.SampledFrom([]string{"1", "2", "3", "4", body}).Draw(r, "id")
			x.subject = rapid.SampledFrom([]string{"x", "y"}).Draw(r, "subject")
			m.Subject = x.subject
		}
		if rapid.IntRange(0, 3).Draw(r, "ttl") == 0 {
			x.ttl, m.TTL = oddTTL, oddTTL
		}
		if rapid.IntRange(0, 3).Draw(r, "due") == 0 {
			x.due = h.model.now.Add(oddSchedule)
			m.ScheduledFor = x.due
		}
		batch = append(batch, m)
		h.model.sendMessage(path, m.ID, x)
	}
	h.sendBatch(path, batch...)
}

func (h *busHistory) receiveSome(r *rapid.T) {
	h.passMillisecond()
	for range rapid.IntRange(1, 3).Draw(r, "n") {
		path := rapid.SampledFrom(h.usedPaths("plain", "sessions", "t/subscriptions/all", "t/subscriptions/some", "plain/$DeadLetterQueue")).Draw(r, "from")
		q, c := h.model.queues[path], h.plain[path]
		var session *string
		if path == "sessions" {
			id := rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "session")
			if session, c = &id, h.holders[id]; c == nil {
				continue
			}
		}
		want, got := h.model.takeMessage(q, session), c.takeDeliveries(1)
		if want == nil {
			require.Empty(r, got)
			continue
		}
		require.Equal(r, []string{want.body}, bodiesOf(got))
		require.Equal(r, want.count, got[0].DeliveryCount)
		want.token = got[0].Token
	}
}

// lockedMessages returns all locked messages and their queues, in the order of the model.
func (h *busHistory) lockedMessages() (queues []*modelQueue, messages []*modelMessage) {
	for _, q := range h.model.sortedQueues() {
		for _, x := range q.messages {
			if x.locked {
				queues, messages = append(queues, q), append(messages, x)
			}
		}
	}
	return queues, messages
}

func (h *busHistory) settleOne(r *rapid.T) {
	h.passMillisecond()
	queues, messages := h.lockedMessages()
	if len(messages) == 0 {
		unknown := []LockToken{{1}}
		require.ErrorIs(r, awaitDone(func(done func(error)) { h.bus.Settle("plain", unknown, Settlement{}, done) }), ErrLockLost)
		return
	}
	i := rapid.IntRange(0, len(messages)-1).Draw(r, "which")
	how := Settlement{Outcome: Outcome(rapid.IntRange(0, 4).Draw(r, "how"))}
	if how.Outcome == DeadLetter {
		how.Reason = "because"
	}
	token := []LockToken{messages[i].token}
	h.requireDone(func(done func(error)) { h.bus.Settle(queues[i].path, token, how, done) })
	h.model.settleMessage(queues[i], messages[i], how)
	require.ErrorIs(r, awaitDone(func(done func(error)) { h.bus.Settle(queues[i].path, token, how, done) }), ErrLockLost)
}

func (h *busHistory) acceptSome(r *rapid.T) {
	h.passMillisecond()
	q := h.model.queues["sessions"]
	id := rapid.SampledFrom([]string{"", "a", "b", "next"}).Draw(r, "session")
	want := SessionRequest{ID: &id}
	found := true
	if id == "next" {
		want.ID = nil
		id, found = q.nextSession()
	}
	c := &testConsumer{w: h.busFixture, path: "sessions"}
	var refused error
	cancel := h.bus.AcceptSession("sessions", want, c.receiverOptions(PeekLock), func(got *Receiver, err error) { c.Receiver, refused = got, err })
	h.waitSettled()
	cancel()
	h.waitSettled()
	_, held := q.sessions[id]
	switch {
	case !found:
		require.ErrorIs(r, refused, ErrTimeout)
	case held:
		require.ErrorIs(r, refused, ErrSessionLocked)
	default:
		require.NoError(r, refused)
		require.Equal(r, id, c.SessionID())
		h.holders[id] = c
		q.sessions[id] = h.model.now.Add(q.config.LockDuration)
	}
}

func (h *busHistory) releaseOne(r *rapid.T) {
	h.passMillisecond()
	id := rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "session")
	if c := h.holders[id]; c != nil {
		c.Close()
		h.waitSettled()
		h.model.releaseSession(h.model.queues["sessions"], id)
		delete(h.holders, id)
	}
}

func (h *busHistory) renewOne(r *rapid.T) {
	h.passMillisecond()
	if rapid.Bool().Draw(r, "session") {
		id := rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "id")
		q := h.model.queues["sessions"]
		err := awaitDone(func(done func(error)) {
			h.bus.RenewSession("sessions", id, func(_ time.Time, err error) { done(err) })
		})
		if h.holders[id] == nil {
			require.ErrorIs(r, err, ErrSessionLockLost)
			return
		}
		require.NoError(r, err)
		q.sessions[id] = h.model.now.Add(q.config.LockDuration)
		return
	}
	queues, messages := h.lockedMessages()
	for i, x := range messages {
		err := awaitDone(func(done func(error)) {
			h.bus.RenewLocks(queues[i].path, []LockToken{x.token}, func(_ []time.Time, err error) { done(err) })
		})
		if x.until.IsZero() {
			require.ErrorIs(r, err, ErrNotAllowed)
			continue
		}
		require.NoError(r, err)
		h.model.order++
		x.until, x.order = h.model.now.Add(queues[i].config.LockDuration), h.model.order
	}
}

func (h *busHistory) receiveDeferred(r *rapid.T) {
	h.passMillisecond()
	path := rapid.SampledFrom(h.usedPaths("plain", "sessions", "t/subscriptions/all", "t/subscriptions/some")).Draw(r, "from")
	q := h.model.queues[path]
	x := q.findMessage(func(x *modelMessage) bool { return x.state == Deferred })
	if x == nil {
		return
	}
	var got []Delivery
	err := awaitDone(func(done func(error)) {
		h.bus.ReceiveDeferred(path, []int64{x.seq}, PeekLock, &x.session, func(ds []Delivery, err error) {
			got = ds
			done(err)
		})
	})
	_, held := q.sessions[x.session]
	switch {
	case q.config.RequiresSession && !held:
		require.ErrorIs(r, err, ErrSessionLockLost)
	case x.locked:
		require.ErrorIs(r, err, ErrNotFound)
	default:
		require.NoError(r, err)
		require.Equal(r, []string{x.body}, bodiesOf(got))
		h.model.lockMessage(q, x)
		x.token = got[0].Token
	}
}

func (h *busHistory) cancelOne(r *rapid.T) {
	h.passMillisecond()
	q := h.model.queues["plain"]
	if x := q.findMessage(func(x *modelMessage) bool { return x.state == Scheduled }); x != nil {
		h.requireDone(func(done func(error)) { h.bus.CancelScheduled("plain", []int64{x.seq}, done) })
		q.dropMessage(x)
	}
	if len(h.model.held) > 0 && rapid.Bool().Draw(r, "of the topic") {
		h.requireDone(func(done func(error)) { h.bus.CancelScheduled("t", []int64{h.model.held[0].seq}, done) })
		h.model.held = slices.Delete(h.model.held, 0, 1)
	}
}

func (h *busHistory) waitSome(r *rapid.T) {
	h.advanceBoth(time.Duration(rapid.SampledFrom([]int{1, 5, 10, 25, 100}).Draw(r, "seconds")) * time.Second)
}

func (h *busHistory) restartAll(r *rapid.T) {
	h.passMillisecond()
	h.restartBus()
	h.model.forgetLocks()
	h.startRun()
}

// compareAll compares all messages and counts of the bus with the model.
func (h *busHistory) compareAll(r *rapid.T) {
	h.waitSettled()
	for id, c := range h.holders {
		if _, held := h.model.queues["sessions"].sessions[id]; !held {
			require.Equal(r, []error{ErrSessionLockLost}, c.lost, "session %q", id)
			delete(h.holders, id)
		}
	}
	for _, q := range h.model.sortedQueues() {
		peeked, err := h.bus.Peek(q.path, PeekOptions{Max: 1000})
		require.NoError(r, err)
		require.Equal(r, q.describeQueue(), describeMessages(peeked), "%s", q.path)
		if q.deadLetters != nil {
			got := h.countsOf(q.path)
			got.Bytes = 0
			require.Equal(r, Counts{Active: q.countState(Active), Deferred: q.countState(Deferred), Scheduled: q.countState(Scheduled), DeadLetter: int64(len(q.deadLetters.messages))}, got, "%s", q.path)
		}
	}
	require.EqualValues(r, len(h.model.held), h.countsOf("t").Scheduled)
}
