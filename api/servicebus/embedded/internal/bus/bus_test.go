package bus

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQueue_DeliversInOrderAndOnce(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	w.sendBatch("q", textMessage("a"), textMessage("b"))
	w.sendBatch("Q", textMessage("c"))
	c := w.newReceiver("q", PeekLock)
	got := c.takeDeliveries(10)
	require.Equal(t, []string{"a", "b", "c"}, bodiesOf(got))
	require.EqualValues(t, 2, got[1].SequenceNumber)
	require.Equal(t, start, got[0].EnqueuedAt)
	require.Empty(t, c.takeDeliveries(10), "locked")
	c.settleDeliveries(Settlement{}, got...)
	require.Zero(t, w.countsOf("q"))
	w.restartBus()
	require.Empty(t, w.newReceiver("q", PeekLock).takeDeliveries(10))
}

func TestReceivers_WithCreditAlternate(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	a, b := w.newReceiver("q", ReceiveAndDelete), w.newReceiver("q", ReceiveAndDelete)
	a.AddCredit(2)
	b.AddCredit(2)
	w.sendBatch("q", textMessage("1"), textMessage("2"), textMessage("3"), textMessage("4"), textMessage("5"))
	require.Equal(t, []string{"1", "3"}, a.takeBodies(0))
	require.Equal(t, []string{"2", "4"}, b.takeBodies(0))
	require.EqualValues(t, 1, w.countsOf("q").Active)
}

func TestDrain_ReturnsTheRemainingCredit(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	w.sendBatch("q", textMessage("a"))
	c := w.newReceiver("q", ReceiveAndDelete)
	c.AddCredit(5)
	left := make(chan int, 1)
	c.Drain(func(n int) { left <- n })
	require.Equal(t, 4, <-left)
	w.sendBatch("q", textMessage("b"))
	require.Equal(t, []string{"a"}, c.takeBodies(0))
}

func TestClosedReceiver_KeepsItsLocksUntilTheyExpire(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q", LockDuration: time.Minute})
	w.sendBatch("q", textMessage("a"), textMessage("b"))
	c := w.newReceiver("q", PeekLock)
	got := c.takeDeliveries(2)
	c.Close()
	other := w.newReceiver("q", PeekLock)
	require.Empty(t, other.takeDeliveries(1))
	c.settleDeliveries(Settlement{}, got[1])
	w.advanceTime(time.Minute)
	d := other.takeOne()
	require.Equal(t, "a", string(d.Sections))
	require.EqualValues(t, 1, d.DeliveryCount)
	require.Equal(t, start.Add(2*time.Minute), d.LockedUntil)
}

func TestDeadLetter_HasItsReasonAndSource(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "Orders"})
	w.sendBatch("orders", messageWith("a", map[string]any{"kept": 1}))
	c := w.newReceiver("orders", PeekLock)
	c.settleDeliveries(Settlement{Outcome: DeadLetter, Reason: "poison", Description: "bad", Properties: map[string]any{"by": "me"}}, c.takeOne())
	dead := w.newReceiver("orders/$deadletterqueue", PeekLock)
	d := dead.takeOne()
	require.Equal(t, []any{"poison", "bad", "me", int64(1)},
		[]any{d.propertyOf("DeadLetterReason"), d.propertyOf("DeadLetterErrorDescription"), d.propertyOf("by"), d.propertyOf("kept")})
	require.Equal(t, "Orders", d.DeadLetterSource)
	for range 20 {
		dead.settleDeliveries(Settlement{Outcome: Abandon}, d)
		d = dead.takeOne()
	}
	require.Zero(t, d.DeliveryCount, "nothing is counted among dead letters")
	require.Equal(t, Counts{DeadLetter: 1, Bytes: w.countsOf("orders").Bytes}, w.countsOf("orders"))
	dead.settleDeliveries(Settlement{}, d)
	require.Zero(t, w.countsOf("orders"))
}

func TestUndecodableProperties_DoNotBlockAMessage(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	m := textMessage("a")
	m.ApplicationProperties = []byte("garbage")
	w.sendBatch("q", m)
	c := w.newReceiver("q", PeekLock)
	c.settleDeliveries(Settlement{Outcome: DeadLetter, Reason: "poison"}, c.takeOne())
	require.Equal(t, "poison", w.newReceiver("q/$DeadLetterQueue", PeekLock).takeOne().propertyOf("DeadLetterReason"))
}

func TestAbandon_MergesPropertiesAndCounts(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q", MaxDeliveryCount: 3})
	w.sendBatch("q", textMessage("a"), textMessage("b"))
	c := w.newReceiver("q", PeekLock)
	for i := range 3 {
		d := c.takeOne()
		require.Equal(t, "a", string(d.Sections), "back at its place")
		require.EqualValues(t, i, d.DeliveryCount)
		c.settleDeliveries(Settlement{Outcome: Abandon, Properties: map[string]any{"try": i}}, d)
		w.restartBus()
		c = w.newReceiver("q", PeekLock)
	}
	require.Equal(t, []string{"b"}, c.takeBodies(5))
	d := w.newReceiver("q/$DeadLetterQueue", PeekLock).takeOne()
	require.Equal(t, ReasonDeliveries, d.propertyOf("DeadLetterReason"))
	require.Equal(t, int64(2), d.propertyOf("try"))
}

func TestNextSession_HasTheOldestMessage(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "s", RequiresSession: true})
	w.sendBatch("s", inSession("b", "1"), inSession("", "2"), inSession("a", "3"), inSession("b", "4"))
	var order []string
	for range 3 {
		c, err := w.acceptSession("s", SessionRequest{})
		require.NoError(t, err)
		order = append(order, c.SessionID()+":"+fmt.Sprint(c.takeBodies(9)))
	}
	require.Equal(t, []string{"b:[1 4]", ":[2]", "a:[3]"}, order)
}

func TestAcceptSession_WaitsForTheFirstFreeSession(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "s", RequiresSession: true})
	var granted []string
	ask := func(timeout time.Duration) (cancel func()) {
		return w.bus.AcceptSession("s", SessionRequest{Timeout: timeout}, ReceiverOptions{}, func(r *Receiver, err error) {
			if err != nil {
				granted = append(granted, err.Error())
				return
			}
			granted = append(granted, r.SessionID())
		})
	}
	ask(time.Minute)
	ask(time.Second)
	ask(0)
	cancel := ask(time.Hour)
	w.waitSettled()
	require.Empty(t, granted)
	w.advanceTime(time.Second)
	cancel()
	w.waitSettled()
	require.Equal(t, []string{ErrTimeout.Error(), ErrTimeout.Error()}, granted)
	held := w.holdSession("s", "b")
	w.sendBatch("s", inSession("b", "1"), inSession("a", "2"))
	require.Equal(t, "a", granted[2])
	held.Close()
	w.waitSettled()
	require.Equal(t, "b", granted[3], "a free session with a message")
}

func TestSession_IsNotEndedByItsFormerLock(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "s", RequiresSession: true, LockDuration: time.Minute})
	w.holdSession("s", "a").Close()
	w.advanceTime(30 * time.Second)
	c := w.holdSession("s", "a")
	require.Equal(t, start.Add(90*time.Second), c.LockedUntil())
	w.advanceTime(45 * time.Second)
	id := "a"
	_, err := w.acceptSession("s", SessionRequest{ID: &id})
	require.ErrorIs(t, err, ErrSessionLocked)
	require.Empty(t, c.lost)
	w.advanceTime(15 * time.Second)
	require.Equal(t, []error{ErrSessionLockLost}, c.lost)
}

func TestSession_KeepsItsStateUntilItIsCleared(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "s", RequiresSession: true})
	w.holdSession("s", "")
	state := func() (got []byte) {
		w.requireDone(func(done func(error)) {
			w.bus.SessionState("s", "", func(s []byte, err error) { got = s; done(err) })
		})
		return got
	}
	set := func(s []byte) error {
		return awaitDone(func(done func(error)) { w.bus.SetSessionState("s", "", s, done) })
	}
	require.Nil(t, state())
	require.NoError(t, set([]byte("half")))
	w.restartBus()
	require.ErrorIs(t, set(nil), ErrSessionLockLost, "nobody holds it now")
	w.holdSession("s", "")
	require.Equal(t, "half", string(state()))
	require.ErrorIs(t, set(make([]byte, MaxSessionState+1)), ErrTooLarge)
	require.NoError(t, set([]byte{}))
	require.Nil(t, state())
}

func TestSessions_AreListedInPages(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "s", RequiresSession: true})
	w.sendBatch("s", inSession("c", "1"), inSession("a", "2"), inSession("", "3"), inSession("a", "4"))
	for _, tc := range []struct {
		skip, top int
		want      []string
	}{{0, 9, []string{"", "a", "c"}}, {1, 1, []string{"a"}}, {3, 9, []string{}}, {0, 0, []string{}}} {
		got, err := w.bus.Sessions("s", time.Time{}, tc.skip, tc.top)
		require.NoError(t, err)
		require.Equal(t, tc.want, got)
	}
	w.holdSession("s", "b")
	w.advanceTime(time.Second)
	w.requireDone(func(done func(error)) { w.bus.SetSessionState("s", "b", []byte("x"), done) })
	changed, err := w.bus.Sessions("s", start.Add(time.Second), 0, 9)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, changed)
}

func TestDuplicateDetection_StoresAMessageOnce(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q", DuplicateWindow: time.Minute})
	w.sendBatch("q", textMessage("a"), textMessage("a"), textMessage("b"))
	w.restartBus()
	w.advanceTime(time.Minute - time.Millisecond)
	w.sendBatch("q", textMessage("a"))
	require.EqualValues(t, 2, w.countsOf("q").Active)
	w.advanceTime(time.Millisecond)
	w.sendBatch("q", textMessage("a"))
	require.EqualValues(t, 3, w.countsOf("q").Active)
	w.advanceTime(time.Hour)
	w.waitSettled()
	require.Zero(t, w.countKeys(tableDuplicate)+w.countKeys(tableForget), "ids are forgotten")
}

func TestScheduledMessage_IsEnqueuedWhenItIsDue(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	later := textMessage("later")
	later.ScheduledFor, later.TTL = start.Add(time.Hour), time.Minute
	var sequences []int64
	w.requireDone(func(done func(error)) {
		w.bus.Schedule("q", []Message{later, later}, func(s []int64, err error) { sequences = s; done(err) })
	})
	require.Equal(t, []int64{1, 2}, sequences)
	w.requireDone(func(done func(error)) { w.bus.CancelScheduled("q", sequences[1:], done) })
	require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.CancelScheduled("q", []int64{1, 2}, done) }), ErrNotFound)
	w.sendBatch("q", textMessage("now"))
	c := w.newReceiver("q", ReceiveAndDelete)
	require.Equal(t, []string{"now"}, c.takeBodies(9))
	w.restartBus()
	w.advanceTime(time.Hour)
	d := w.newReceiver("q", PeekLock).takeOne()
	require.Equal(t, []any{int64(4), int64(1), start.Add(time.Hour), start.Add(time.Hour + time.Minute)},
		[]any{d.SequenceNumber, d.EnqueuedSequenceNumber, d.EnqueuedAt, d.ExpiresAt})
}

func TestExpiry_OfManyMessagesUsesBoundedMemory(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q", DefaultTTL: time.Minute, DeadLetterOnExpiry: true, MaxBytes: 1 << 40})
	batch := make([]Message, 100)
	for i := range batch {
		batch[i] = Message{Sections: make([]byte, 10_000)}
	}
	for range 30 {
		w.sendBatch("q", batch...)
	}
	require.NoError(t, w.bus.Close())
	slow := &slowStore{Store: w.store, proceed: make(chan struct{})}
	var err error
	w.bus, err = Open(slow, Options{Codec: jsonCodec{}, Clock: w.clock})
	require.NoError(t, err)
	w.clock.Advance(time.Hour)
	w.bus.mu.Lock()
	waiting := w.bus.journal.pending.bytes
	w.bus.mu.Unlock()
	close(slow.proceed)
	require.Less(t, waiting, 2*maintenanceBytes, "of 30 MB")
	for w.countsOf("q").Active > 0 {
		w.advanceTime(time.Minute)
	}
	require.Equal(t, Counts{DeadLetter: 3000, Bytes: w.countsOf("q").Bytes}, w.countsOf("q"))
}

func TestBatch_IsStoredCompletely(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "s", RequiresSession: true, MaxMessageBytes: 10})
	large := inSession("a", "0123456789x")
	long := inSession(string(make([]byte, maxID+1)), "b")
	for _, tc := range []struct {
		bad  Message
		want error
	}{{textMessage("x"), ErrNotAllowed}, {large, ErrTooLarge}, {long, ErrInvalid}} {
		err := awaitDone(func(done func(error)) { w.bus.Send("s", []Message{inSession("a", "a"), tc.bad}, done) })
		require.ErrorIs(t, err, tc.want)
	}
	require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.Send("s", nil, done) }), ErrInvalid)
	require.Zero(t, w.countsOf("s"))
}

func TestFullEntity_AcceptsMessagesWhenThereIsRoom(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q", MaxBytes: 1000})
	send := func() error {
		return awaitDone(func(done func(error)) { w.bus.Send("q", []Message{{Sections: make([]byte, 600)}}, done) })
	}
	require.NoError(t, send())
	require.ErrorIs(t, send(), ErrQuotaExceeded)
	c := w.newReceiver("q", PeekLock)
	c.settleDeliveries(Settlement{Outcome: DeadLetter}, c.takeOne())
	require.ErrorIs(t, send(), ErrQuotaExceeded, "dead letters count")
	require.Len(t, w.newReceiver("q/$DeadLetterQueue", ReceiveAndDelete).takeDeliveries(1), 1)
	require.NoError(t, send())
}

func TestForwarding_EndsInATransferDeadLetter(t *testing.T) {
	w := newFixture(t)
	for i := range 6 {
		w.createEntity(Entity{Path: fmt.Sprint("q", i), ForwardTo: fmt.Sprint("q", i+1)})
	}
	w.createEntity(Entity{Path: "q6"})
	w.createEntity(Entity{Path: "lost", ForwardTo: "nowhere", ForwardDeadLettersTo: "q6"})
	w.sendBatch("q3", textMessage("passes"))
	require.Equal(t, "passes", string(w.newReceiver("q6", ReceiveAndDelete).takeOne().Sections))
	w.sendBatch("q0", textMessage("too far"))
	d := w.newReceiver("q4/$Transfer/$DeadLetterQueue", PeekLock).takeOne()
	require.Equal(t, "MaxTransferHopCountExceeded", d.propertyOf("DeadLetterReason"))
	w.sendBatch("lost", textMessage("a"))
	require.EqualValues(t, 1, w.countsOf("lost").TransferDeadLetter)
	w.createEntity(Entity{Path: "from", ForwardDeadLettersTo: "q6"})
	w.sendBatch("from", textMessage("dead"))
	c := w.newReceiver("from", PeekLock)
	c.settleDeliveries(Settlement{Outcome: DeadLetter, Reason: "why"}, c.takeOne())
	d = w.newReceiver("q6", PeekLock).takeOne()
	require.Equal(t, []any{"dead", "why", "from", int64(1)}, []any{string(d.Sections), d.propertyOf("DeadLetterReason"), d.DeadLetterSource, d.EnqueuedSequenceNumber})
}

func TestForwarding_InACycleEnds(t *testing.T) {
	w := newFixture(t)
	for _, topic := range []string{"t", "u"} {
		w.createEntity(Entity{Path: topic, Kind: Topic})
	}
	w.createEntity(Entity{Path: "t/Subscriptions/s", Kind: Subscription, RequiresSession: true, ForwardDeadLettersTo: "u"})
	w.createEntity(Entity{Path: "u/Subscriptions/s", Kind: Subscription, ForwardTo: "t"})
	w.sendBatch("t", textMessage("no session"))
	require.EqualValues(t, 1, w.countsOf("t").TransferDeadLetter+w.countsOf("u").TransferDeadLetter)
	w.createEntity(Entity{Path: "a", ForwardTo: "b"})
	w.createEntity(Entity{Path: "b", ForwardTo: "a"})
	w.sendBatch("a", textMessage("around"))
	require.EqualValues(t, 1, w.countsOf("a").TransferDeadLetter+w.countsOf("b").TransferDeadLetter)
}

func TestSubscription_StoresTheCopiesOfItsRules(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "t", Kind: Topic})
	rules := map[string][]Rule{
		"all":  {{Name: "$Default"}},
		"none": nil,
		"corr": {{Name: "c", Filter: Filter{Correlation: &Correlation{Subject: "x", Properties: map[string]any{"n": 5}}}}},
		"act": {
			{Name: "a", Filter: Filter{SQL: "n > @least", Parameters: map[string]any{"@least": 3}}, Action: "SET sys.Label = 'seen'; SET n = n + 1; REMOVE gone"},
			{Name: "b", Filter: Filter{SQL: "gone IS NOT NULL"}},
			{Name: "c", Filter: Filter{SQL: "EXISTS(gone)"}},
			{Name: "never", Filter: Filter{False: true}},
		},
		"fails": {{Name: "f", Filter: Filter{SQL: "n / 0 = 1"}}},
	}
	for name, list := range rules {
		path := "t/Subscriptions/" + name
		w.createEntity(Entity{Path: path, Kind: Subscription, DeadLetterOnFilterFail: true})
		w.requireDone(func(done func(error)) { w.bus.DeleteRule(path, "$default", done) })
		for _, r := range list {
			w.requireDone(func(done func(error)) { w.bus.AddRule(path, r, done) })
		}
	}
	w.restartBus()
	got, err := w.bus.Rules("t/subscriptions/act")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"@least": int64(3)}, got[0].Filter.Parameters)
	m := messageWith("m", map[string]any{"n": 5, "gone": "x"})
	m.Subject = "x"
	w.sendBatch("t", m)
	shapes := map[string][]string{}
	for name := range rules {
		shapes[name] = []string{}
		for _, d := range w.newReceiver("t/subscriptions/"+name, ReceiveAndDelete).takeDeliveries(9) {
			shapes[name] = append(shapes[name], fmt.Sprint(d.Subject, d.propertyOf("n"), d.propertyOf("gone"), d.Rewritten))
		}
	}
	require.Equal(t, map[string][]string{
		"all": {"x5xfalse"}, "none": {}, "corr": {"x5xfalse"}, "act": {"seen6 <nil> true", "x5xfalse"}, "fails": {},
	}, shapes)
	d := w.newReceiver("t/subscriptions/fails/$DeadLetterQueue", PeekLock).takeOne()
	require.Equal(t, ReasonFilter, d.propertyOf("DeadLetterReason"))
	require.EqualValues(t, 1, d.EnqueuedSequenceNumber)
}

func TestSubscription_WithSessionsRejectsOtherMessages(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "t", Kind: Topic})
	w.createEntity(Entity{Path: "t/Subscriptions/s", Kind: Subscription, RequiresSession: true})
	w.sendBatch("t", textMessage("none"), inSession("a", "some"))
	require.Equal(t, []string{"some"}, w.holdSession("t/subscriptions/s", "a").takeBodies(9))
	require.Equal(t, "Session ID is null.", w.newReceiver("t/subscriptions/s/$DeadLetterQueue", PeekLock).takeOne().propertyOf("DeadLetterReason"))
}

func TestDelete_RemovesAllKeys(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "t", Kind: Topic})
	w.createEntity(Entity{Path: "t/Subscriptions/s", Kind: Subscription})
	var batch []Message
	for i := range 1500 {
		batch = append(batch, textMessage(fmt.Sprint(i)))
	}
	w.sendBatch("t", batch...)
	c := w.newReceiver("t/subscriptions/s", PeekLock)
	locked := c.takeDeliveries(1)
	w.requireDone(func(done func(error)) { w.bus.Delete("T", done) })
	require.ErrorIs(t, c.lost[0], ErrNotFound)
	require.ErrorIs(t, awaitDone(func(done func(error)) {
		w.bus.Settle("t/subscriptions/s", tokensOf(locked), Settlement{}, done)
	}), ErrNotFound)
	require.Empty(t, w.bus.Entities())
	for _, table := range append(tablesOfQueue, tableEntity, tablePurge) {
		require.Zero(t, w.countKeys(table), "table %c", table)
	}
	w.createEntity(Entity{Path: "t", Kind: Topic})
	require.Zero(t, w.countsOf("t"))
}

func TestDisabledEntity_RefusesByItsStatus(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	c := w.newReceiver("q", PeekLock)
	for status, wants := range map[Status][2]bool{
		StatusDisabled: {false, false}, StatusSendDisabled: {false, true}, StatusReceiveDisabled: {true, false}, StatusActive: {true, true},
	} {
		w.requireDone(func(done func(error)) { w.bus.Update(Entity{Path: "q", Status: status}, done) })
		err := awaitDone(func(done func(error)) { w.bus.Send("q", []Message{textMessage("a")}, done) })
		_, receive := w.bus.Receive("q", ReceiverOptions{})
		require.Equal(t, wants, [2]bool{err == nil, receive == nil}, "%s", status)
		if !wants[0] {
			require.ErrorIs(t, err, ErrDisabled)
		}
	}
	require.Equal(t, []error{ErrDisabled}, c.lost)
}

func TestCreate_RefusesInvalidEntities(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	for name, e := range map[string]Entity{
		"no name":                {Kind: Queue},
		"reserved":               {Path: "$cbs", Kind: Queue},
		"no kind":                {Path: "x"},
		"queue in subscriptions": {Path: "t/Subscriptions/s", Kind: Queue},
		"half a subscription":    {Path: "t/Subscriptions/", Kind: Subscription},
		"long lock":              {Path: "x", Kind: Queue, LockDuration: time.Hour},
		"to itself":              {Path: "x", Kind: Queue, ForwardTo: "X"},
		"unknown status":         {Path: "x", Kind: Queue, Status: "Tired"},
		"negative":               {Path: "x", Kind: Queue, DefaultTTL: -1},
	} {
		require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.Create(e, done) }), ErrInvalid, name)
	}
	require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.Create(Entity{Path: "Q", Kind: Queue}, done) }), ErrExists)
	require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.Create(Entity{Path: "t/Subscriptions/s", Kind: Subscription}, done) }), ErrNotFound)
	require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.Update(Entity{Path: "q", RequiresSession: true}, done) }), ErrInvalid)
}

func TestMessageRecord_RoundTrips(t *testing.T) {
	id := "s"
	m := Message{
		ID: "1", SessionID: &id, PartitionKey: "2", Subject: "3", To: "4", ReplyTo: "5", ReplyToSessionID: "6", CorrelationID: "7",
		ContentType: "8", TTL: 9, ScheduledFor: start, ApplicationProperties: []byte("a"), Sections: []byte("b"), SequenceNumber: 10,
		EnqueuedSequenceNumber: 11, EnqueuedAt: start, ExpiresAt: start, DeliveryCount: 12, State: Deferred, DeadLetterSource: "13", Rewritten: true,
	}
	record := encodeMessage(&m)
	got, err := decodeMessage(record)
	require.NoError(t, err)
	want, _ := json.Marshal(m)
	have, _ := json.Marshal(got)
	require.JSONEq(t, string(want), string(have))
	for n := range len(record) - len(m.Sections) {
		_, err := decodeMessage(record[:n])
		require.ErrorIs(t, err, errRecord, "%d bytes", n)
	}
}
