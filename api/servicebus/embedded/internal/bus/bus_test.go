package bus

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMessagesComeInTheOrderTheyWereSentAndOnce(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q"})
	w.send("q", text("a"), text("b"))
	w.send("Q", text("c"))
	c := w.receiver("q", PeekLock)
	got := c.take(10)
	require.Equal(t, []string{"a", "b", "c"}, bodies(got))
	require.EqualValues(t, 2, got[1].SequenceNumber)
	require.Equal(t, start, got[0].EnqueuedAt)
	require.Empty(t, c.take(10), "locked")
	c.settle(Settlement{}, got...)
	require.Zero(t, w.counts("q"))
	w.restart()
	require.Empty(t, w.receiver("q", PeekLock).take(10))
}

func TestReceiversWithCreditTakeTurns(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q"})
	a, b := w.receiver("q", ReceiveAndDelete), w.receiver("q", ReceiveAndDelete)
	a.AddCredit(2)
	b.AddCredit(2)
	w.send("q", text("1"), text("2"), text("3"), text("4"), text("5"))
	require.Equal(t, []string{"1", "3"}, a.bodies(0))
	require.Equal(t, []string{"2", "4"}, b.bodies(0))
	require.EqualValues(t, 1, w.counts("q").Active)
}

func TestDrainGivesBackTheCreditThatIsLeft(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q"})
	w.send("q", text("a"))
	c := w.receiver("q", ReceiveAndDelete)
	c.AddCredit(5)
	left := make(chan int, 1)
	c.Drain(func(n int) { left <- n })
	require.Equal(t, 4, <-left)
	w.send("q", text("b"))
	require.Equal(t, []string{"a"}, c.bodies(0))
}

func TestAClosedReceiverKeepsItsLocksUntilTheyExpire(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q", LockDuration: time.Minute})
	w.send("q", text("a"), text("b"))
	c := w.receiver("q", PeekLock)
	got := c.take(2)
	c.Close()
	other := w.receiver("q", PeekLock)
	require.Empty(t, other.take(1))
	c.settle(Settlement{}, got[1])
	w.pass(time.Minute)
	d := other.one()
	require.Equal(t, "a", string(d.Sections))
	require.EqualValues(t, 1, d.DeliveryCount)
	require.Equal(t, start.Add(2*time.Minute), d.LockedUntil)
}

func TestADeadLetterSaysWhyAndWhereItWas(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "Orders"})
	w.send("orders", properties("a", map[string]any{"kept": 1}))
	c := w.receiver("orders", PeekLock)
	c.settle(Settlement{Outcome: DeadLetter, Reason: "poison", Description: "bad", Properties: map[string]any{"by": "me"}}, c.one())
	dead := w.receiver("orders/$deadletterqueue", PeekLock)
	d := dead.one()
	require.Equal(t, []any{"poison", "bad", "me", int64(1)},
		[]any{d.property("DeadLetterReason"), d.property("DeadLetterErrorDescription"), d.property("by"), d.property("kept")})
	require.Equal(t, "Orders", d.DeadLetterSource)
	for range 20 {
		dead.settle(Settlement{Outcome: Abandon}, d)
		d = dead.one()
	}
	require.Zero(t, d.DeliveryCount, "nothing is counted among dead letters")
	require.Equal(t, Counts{DeadLetter: 1, Bytes: w.counts("orders").Bytes}, w.counts("orders"))
	dead.settle(Settlement{}, d)
	require.Zero(t, w.counts("orders"))
}

func TestPropertiesThatCannotBeReadDoNotKeepAMessage(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q"})
	m := text("a")
	m.ApplicationProperties = []byte("garbage")
	w.send("q", m)
	c := w.receiver("q", PeekLock)
	c.settle(Settlement{Outcome: DeadLetter, Reason: "poison"}, c.one())
	require.Equal(t, "poison", w.receiver("q/$DeadLetterQueue", PeekLock).one().property("DeadLetterReason"))
}

func TestAnAbandonedMessageCarriesTheNewPropertiesAndOneMoreCount(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q", MaxDeliveryCount: 3})
	w.send("q", text("a"), text("b"))
	c := w.receiver("q", PeekLock)
	for i := range 3 {
		d := c.one()
		require.Equal(t, "a", string(d.Sections), "back at its place")
		require.EqualValues(t, i, d.DeliveryCount)
		c.settle(Settlement{Outcome: Abandon, Properties: map[string]any{"try": i}}, d)
		w.restart()
		c = w.receiver("q", PeekLock)
	}
	require.Equal(t, []string{"b"}, c.bodies(5))
	d := w.receiver("q/$DeadLetterQueue", PeekLock).one()
	require.Equal(t, ReasonDeliveries, d.property("DeadLetterReason"))
	require.Equal(t, int64(2), d.property("try"))
}

func TestTheNextSessionIsTheOneWithTheOldestMessage(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "s", RequiresSession: true})
	w.send("s", inSession("b", "1"), inSession("", "2"), inSession("a", "3"), inSession("b", "4"))
	var order []string
	for range 3 {
		c, err := w.accept("s", SessionRequest{})
		require.NoError(t, err)
		order = append(order, c.SessionID()+":"+fmt.Sprint(c.bodies(9)))
	}
	require.Equal(t, []string{"b:[1 4]", ":[2]", "a:[3]"}, order)
}

func TestWhoWaitsForASessionGetsTheFirstThatBecomesFree(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "s", RequiresSession: true})
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
	w.settled()
	require.Empty(t, granted)
	w.pass(time.Second)
	cancel()
	w.settled()
	require.Equal(t, []string{ErrTimeout.Error(), ErrTimeout.Error()}, granted)
	held := w.session("s", "b")
	w.send("s", inSession("b", "1"), inSession("a", "2"))
	require.Equal(t, "a", granted[2])
	held.Close()
	w.settled()
	require.Equal(t, "b", granted[3], "a free session with a message")
}

func TestASessionThatWasReleasedIsNotEndedByItsFormerLock(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "s", RequiresSession: true, LockDuration: time.Minute})
	w.session("s", "a").Close()
	w.pass(30 * time.Second)
	c := w.session("s", "a")
	require.Equal(t, start.Add(90*time.Second), c.LockedUntil())
	w.pass(45 * time.Second)
	id := "a"
	_, err := w.accept("s", SessionRequest{ID: &id})
	require.ErrorIs(t, err, ErrSessionLocked)
	require.Empty(t, c.lost)
	w.pass(15 * time.Second)
	require.Equal(t, []error{ErrSessionLockLost}, c.lost)
}

func TestASessionKeepsItsStateUntilItIsCleared(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "s", RequiresSession: true})
	w.session("s", "")
	state := func() (got []byte) {
		w.ok(func(done func(error)) {
			w.bus.SessionState("s", "", func(s []byte, err error) { got = s; done(err) })
		})
		return got
	}
	set := func(s []byte) error {
		return answer(func(done func(error)) { w.bus.SetSessionState("s", "", s, done) })
	}
	require.Nil(t, state())
	require.NoError(t, set([]byte("half")))
	w.restart()
	require.ErrorIs(t, set(nil), ErrSessionLockLost, "nobody holds it now")
	w.session("s", "")
	require.Equal(t, "half", string(state()))
	require.ErrorIs(t, set(make([]byte, MaxSessionState+1)), ErrTooLarge)
	require.NoError(t, set([]byte{}))
	require.Nil(t, state())
}

func TestSessionsAreListedInPages(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "s", RequiresSession: true})
	w.send("s", inSession("c", "1"), inSession("a", "2"), inSession("", "3"), inSession("a", "4"))
	for _, tc := range []struct {
		skip, top int
		want      []string
	}{{0, 9, []string{"", "a", "c"}}, {1, 1, []string{"a"}}, {3, 9, []string{}}, {0, 0, []string{}}} {
		got, err := w.bus.Sessions("s", time.Time{}, tc.skip, tc.top)
		require.NoError(t, err)
		require.Equal(t, tc.want, got)
	}
	w.session("s", "b")
	w.pass(time.Second)
	w.ok(func(done func(error)) { w.bus.SetSessionState("s", "b", []byte("x"), done) })
	changed, err := w.bus.Sessions("s", start.Add(time.Second), 0, 9)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, changed)
}

func TestAMessageSentTwiceWithinTheWindowIsStoredOnce(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q", DuplicateWindow: time.Minute})
	w.send("q", text("a"), text("a"), text("b"))
	w.restart()
	w.pass(time.Minute - time.Millisecond)
	w.send("q", text("a"))
	require.EqualValues(t, 2, w.counts("q").Active)
	w.pass(time.Millisecond)
	w.send("q", text("a"))
	require.EqualValues(t, 3, w.counts("q").Active)
	w.pass(time.Hour)
	w.settled()
	require.Zero(t, w.keys(tableDuplicate)+w.keys(tableForget), "ids are forgotten")
}

func TestAScheduledMessageIsEnqueuedWhenItIsDue(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q"})
	later := text("later")
	later.ScheduledFor, later.TTL = start.Add(time.Hour), time.Minute
	var sequences []int64
	w.ok(func(done func(error)) {
		w.bus.Schedule("q", []Message{later, later}, func(s []int64, err error) { sequences = s; done(err) })
	})
	require.Equal(t, []int64{1, 2}, sequences)
	w.ok(func(done func(error)) { w.bus.CancelScheduled("q", sequences[1:], done) })
	require.ErrorIs(t, answer(func(done func(error)) { w.bus.CancelScheduled("q", []int64{1, 2}, done) }), ErrNotFound)
	w.send("q", text("now"))
	c := w.receiver("q", ReceiveAndDelete)
	require.Equal(t, []string{"now"}, c.bodies(9))
	w.restart()
	w.pass(time.Hour)
	d := w.receiver("q", PeekLock).one()
	require.Equal(t, []any{int64(4), int64(1), start.Add(time.Hour), start.Add(time.Hour + time.Minute)},
		[]any{d.SequenceNumber, d.EnqueuedSequenceNumber, d.EnqueuedAt, d.ExpiresAt})
}

func TestManyMessagesThatExpireAtOnceDoNotPileUpInMemory(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q", DefaultTTL: time.Minute, DeadLetterOnExpiry: true, MaxBytes: 1 << 40})
	batch := make([]Message, 100)
	for i := range batch {
		batch[i] = Message{Sections: make([]byte, 10_000)}
	}
	for range 30 {
		w.send("q", batch...)
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
	require.Less(t, waiting, 2*choreBytes, "of 30 MB")
	for w.counts("q").Active > 0 {
		w.pass(time.Minute)
	}
	require.Equal(t, Counts{DeadLetter: 3000, Bytes: w.counts("q").Bytes}, w.counts("q"))
}

func TestABatchIsStoredAsAWholeOrNotAtAll(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "s", RequiresSession: true, MaxMessageBytes: 10})
	large := inSession("a", "0123456789x")
	long := inSession(string(make([]byte, maxID+1)), "b")
	for _, tc := range []struct {
		bad  Message
		want error
	}{{text("x"), ErrNotAllowed}, {large, ErrTooLarge}, {long, ErrInvalid}} {
		err := answer(func(done func(error)) { w.bus.Send("s", []Message{inSession("a", "a"), tc.bad}, done) })
		require.ErrorIs(t, err, tc.want)
	}
	require.ErrorIs(t, answer(func(done func(error)) { w.bus.Send("s", nil, done) }), ErrInvalid)
	require.Zero(t, w.counts("s"))
}

func TestAFullEntityRefusesUntilThereIsRoom(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q", MaxBytes: 1000})
	send := func() error {
		return answer(func(done func(error)) { w.bus.Send("q", []Message{{Sections: make([]byte, 600)}}, done) })
	}
	require.NoError(t, send())
	require.ErrorIs(t, send(), ErrQuotaExceeded)
	c := w.receiver("q", PeekLock)
	c.settle(Settlement{Outcome: DeadLetter}, c.one())
	require.ErrorIs(t, send(), ErrQuotaExceeded, "dead letters count")
	require.Len(t, w.receiver("q/$DeadLetterQueue", ReceiveAndDelete).take(1), 1)
	require.NoError(t, send())
}

func TestForwardingPassesOnUntilItCannot(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		w.create(Entity{Path: fmt.Sprint("q", i), ForwardTo: fmt.Sprint("q", i+1)})
	}
	w.create(Entity{Path: "q6"})
	w.create(Entity{Path: "lost", ForwardTo: "nowhere", ForwardDeadLettersTo: "q6"})
	w.send("q3", text("passes"))
	require.Equal(t, "passes", string(w.receiver("q6", ReceiveAndDelete).one().Sections))
	w.send("q0", text("too far"))
	d := w.receiver("q4/$Transfer/$DeadLetterQueue", PeekLock).one()
	require.Equal(t, "MaxTransferHopCountExceeded", d.property("DeadLetterReason"))
	w.send("lost", text("a"))
	require.EqualValues(t, 1, w.counts("lost").TransferDeadLetter)
	w.create(Entity{Path: "from", ForwardDeadLettersTo: "q6"})
	w.send("from", text("dead"))
	c := w.receiver("from", PeekLock)
	c.settle(Settlement{Outcome: DeadLetter, Reason: "why"}, c.one())
	d = w.receiver("q6", PeekLock).one()
	require.Equal(t, []any{"dead", "why", "from", int64(1)}, []any{string(d.Sections), d.property("DeadLetterReason"), d.DeadLetterSource, d.EnqueuedSequenceNumber})
}

func TestForwardingInACircleEnds(t *testing.T) {
	w := newWorld(t)
	for _, topic := range []string{"t", "u"} {
		w.create(Entity{Path: topic, Kind: Topic})
	}
	w.create(Entity{Path: "t/Subscriptions/s", Kind: Subscription, RequiresSession: true, ForwardDeadLettersTo: "u"})
	w.create(Entity{Path: "u/Subscriptions/s", Kind: Subscription, ForwardTo: "t"})
	w.send("t", text("no session"))
	require.EqualValues(t, 1, w.counts("t").TransferDeadLetter+w.counts("u").TransferDeadLetter)
	w.create(Entity{Path: "a", ForwardTo: "b"})
	w.create(Entity{Path: "b", ForwardTo: "a"})
	w.send("a", text("around"))
	require.EqualValues(t, 1, w.counts("a").TransferDeadLetter+w.counts("b").TransferDeadLetter)
}

func TestEachSubscriptionGetsWhatItsRulesMake(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "t", Kind: Topic})
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
		w.create(Entity{Path: path, Kind: Subscription, DeadLetterOnFilterFail: true})
		w.ok(func(done func(error)) { w.bus.DeleteRule(path, "$default", done) })
		for _, r := range list {
			w.ok(func(done func(error)) { w.bus.AddRule(path, r, done) })
		}
	}
	w.restart()
	got, err := w.bus.Rules("t/subscriptions/act")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"@least": int64(3)}, got[0].Filter.Parameters)
	m := properties("m", map[string]any{"n": 5, "gone": "x"})
	m.Subject = "x"
	w.send("t", m)
	shapes := map[string][]string{}
	for name := range rules {
		shapes[name] = []string{}
		for _, d := range w.receiver("t/subscriptions/"+name, ReceiveAndDelete).take(9) {
			shapes[name] = append(shapes[name], fmt.Sprint(d.Subject, d.property("n"), d.property("gone"), d.Rewritten))
		}
	}
	require.Equal(t, map[string][]string{
		"all": {"x5xfalse"}, "none": {}, "corr": {"x5xfalse"}, "act": {"seen6 <nil> true", "x5xfalse"}, "fails": {},
	}, shapes)
	d := w.receiver("t/subscriptions/fails/$DeadLetterQueue", PeekLock).one()
	require.Equal(t, ReasonFilter, d.property("DeadLetterReason"))
	require.EqualValues(t, 1, d.EnqueuedSequenceNumber)
}

func TestAMessageWithoutSessionIsADeadLetterOfASubscriptionWithSessions(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "t", Kind: Topic})
	w.create(Entity{Path: "t/Subscriptions/s", Kind: Subscription, RequiresSession: true})
	w.send("t", text("none"), inSession("a", "some"))
	require.Equal(t, []string{"some"}, w.session("t/subscriptions/s", "a").bodies(9))
	require.Equal(t, "Session ID is null.", w.receiver("t/subscriptions/s/$DeadLetterQueue", PeekLock).one().property("DeadLetterReason"))
}

func TestADeletedEntityLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "t", Kind: Topic})
	w.create(Entity{Path: "t/Subscriptions/s", Kind: Subscription})
	var batch []Message
	for i := range 1500 {
		batch = append(batch, text(fmt.Sprint(i)))
	}
	w.send("t", batch...)
	c := w.receiver("t/subscriptions/s", PeekLock)
	locked := c.take(1)
	w.ok(func(done func(error)) { w.bus.Delete("T", done) })
	require.ErrorIs(t, c.lost[0], ErrNotFound)
	require.ErrorIs(t, answer(func(done func(error)) {
		w.bus.Settle("t/subscriptions/s", tokensOf(locked), Settlement{}, done)
	}), ErrNotFound)
	require.Empty(t, w.bus.Entities())
	for _, table := range append(tablesOfQueue, tableEntity, tablePurge) {
		require.Zero(t, w.keys(table), "table %c", table)
	}
	w.create(Entity{Path: "t", Kind: Topic})
	require.Zero(t, w.counts("t"))
}

func TestADisabledEntityRefusesWhatItsStatusSays(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q"})
	c := w.receiver("q", PeekLock)
	for status, wants := range map[Status][2]bool{
		StatusDisabled: {false, false}, StatusSendDisabled: {false, true}, StatusReceiveDisabled: {true, false}, StatusActive: {true, true},
	} {
		w.ok(func(done func(error)) { w.bus.Update(Entity{Path: "q", Status: status}, done) })
		err := answer(func(done func(error)) { w.bus.Send("q", []Message{text("a")}, done) })
		_, receive := w.bus.Receive("q", ReceiverOptions{})
		require.Equal(t, wants, [2]bool{err == nil, receive == nil}, "%s", status)
		if !wants[0] {
			require.ErrorIs(t, err, ErrDisabled)
		}
	}
	require.Equal(t, []error{ErrDisabled}, c.lost)
}

func TestAnEntityThatMakesNoSenseIsRefused(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q"})
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
		require.ErrorIs(t, answer(func(done func(error)) { w.bus.Create(e, done) }), ErrInvalid, name)
	}
	require.ErrorIs(t, answer(func(done func(error)) { w.bus.Create(Entity{Path: "Q", Kind: Queue}, done) }), ErrExists)
	require.ErrorIs(t, answer(func(done func(error)) { w.bus.Create(Entity{Path: "t/Subscriptions/s", Kind: Subscription}, done) }), ErrNotFound)
	require.ErrorIs(t, answer(func(done func(error)) { w.bus.Update(Entity{Path: "q", RequiresSession: true}, done) }), ErrInvalid)
}

func TestAStoredMessageIsTheMessage(t *testing.T) {
	id := "s"
	m := Message{
		ID: "1", SessionID: &id, PartitionKey: "2", Subject: "3", To: "4", ReplyTo: "5", ReplyToSessionID: "6", CorrelationID: "7",
		ContentType: "8", TTL: 9, ScheduledFor: start, ApplicationProperties: []byte("a"), Sections: []byte("b"), SequenceNumber: 10,
		EnqueuedSequenceNumber: 11, EnqueuedAt: start, ExpiresAt: start, DeliveryCount: 12, State: Deferred, DeadLetterSource: "13", Rewritten: true,
	}
	record := encode(&m)
	got, err := decode(record)
	require.NoError(t, err)
	want, _ := json.Marshal(m)
	have, _ := json.Marshal(got)
	require.JSONEq(t, string(want), string(have))
	for n := range len(record) - len(m.Sections) {
		_, err := decode(record[:n])
		require.ErrorIs(t, err, errRecord, "%d bytes", n)
	}
}
