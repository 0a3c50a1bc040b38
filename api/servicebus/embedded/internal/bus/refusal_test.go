package bus

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

func TestEntity_RefusesOperationsOfOtherKinds(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	w.createEntity(Entity{Path: "s", RequiresSession: true})
	w.createEntity(Entity{Path: "t", Kind: Topic})
	w.createEntity(Entity{Path: "t/Subscriptions/s", Kind: Subscription})
	w.sendBatch("s", inSession("a", "1"), inSession("a", "2"))
	held := w.holdSession("s", "a")
	locked := held.takeDeliveries(1)
	long := strings.Repeat("x", maxID+1)
	a := "a"
	deferred := func(path string, sequences []int64, session *string) func(func(error)) {
		return func(done func(error)) {
			w.bus.ReceiveDeferred(path, sequences, PeekLock, session, func(_ []Delivery, err error) { done(err) })
		}
	}
	accept := func(path string, id *string) func(func(error)) {
		return func(done func(error)) {
			w.bus.AcceptSession(path, SessionRequest{ID: id}, ReceiverOptions{}, func(_ *Receiver, err error) { done(err) })
		}
	}
	send := func(path string, m Message) func(func(error)) {
		return func(done func(error)) { w.bus.Send(path, []Message{m}, done) }
	}
	for name, tc := range map[string]struct {
		operation func(func(error))
		want      error
	}{
		"send to nothing":            {send("none", textMessage("a")), ErrNotFound},
		"send to a subscription":     {send("t/subscriptions/s", textMessage("a")), ErrNotAllowed},
		"send to dead letters":       {send("q/$DeadLetterQueue", textMessage("a")), ErrNotAllowed},
		"negative time to live":      {send("q", Message{TTL: -1}), ErrInvalid},
		"long id":                    {send("q", Message{ID: long}), ErrInvalid},
		"long texts":                 {send("q", Message{To: strings.Repeat("x", maxTexts+1)}), ErrTooLarge},
		"session of a plain queue":   {accept("q", &a), ErrNotAllowed},
		"session of dead letters":    {accept("s/$DeadLetterQueue", nil), ErrNotAllowed},
		"session of nothing":         {accept("none", nil), ErrNotFound},
		"long session":               {accept("s", &long), ErrInvalid},
		"held session":               {accept("s", &a), ErrSessionLocked},
		"no sequence numbers":        {deferred("q", nil, nil), ErrInvalid},
		"what is not deferred":       {deferred("s", []int64{2}, &a), ErrNotFound},
		"deferred without session":   {deferred("s", []int64{2}, nil), ErrNotAllowed},
		"deferred of a free session": {deferred("s", []int64{2}, &long), ErrSessionLockLost},
		"cancel in nothing":          {func(done func(error)) { w.bus.CancelScheduled("none", nil, done) }, ErrNotFound},
		"schedule in nothing":        {func(done func(error)) { w.bus.Schedule("none", nil, func(_ []int64, err error) { done(err) }) }, ErrNotFound},
		"update nothing":             {func(done func(error)) { w.bus.Update(Entity{Path: "none"}, done) }, ErrNotFound},
		"update to nonsense":         {func(done func(error)) { w.bus.Update(Entity{Path: "q", DefaultTTL: -1}, done) }, ErrInvalid},
		"delete nothing":             {func(done func(error)) { w.bus.Delete("none", done) }, ErrNotFound},
		"state of a free session":    {func(done func(error)) { w.bus.SessionState("s", "b", func(_ []byte, err error) { done(err) }) }, ErrSessionLockLost},
		"settle in another entity":   {func(done func(error)) { w.bus.Settle("q", tokensOf(locked), Settlement{}, done) }, ErrLockLost},
		"settle in a topic":          {func(done func(error)) { w.bus.Settle("t", tokensOf(locked), Settlement{}, done) }, ErrNotAllowed},
		"settle twice in one":        {func(done func(error)) { w.bus.Settle("s", tokensOf(append(locked, locked...)), Settlement{}, done) }, ErrLockLost},
		"renew a lock of a session": {func(done func(error)) {
			w.bus.RenewLocks("s", tokensOf(locked), func(_ []time.Time, err error) { done(err) })
		}, ErrNotAllowed},
		"renew what is not locked": {func(done func(error)) {
			w.bus.RenewLocks("s", make([]LockToken, 1), func(_ []time.Time, err error) { done(err) })
		}, ErrLockLost},
		"receive from a topic":        {func(done func(error)) { _, err := w.bus.Receive("t", ReceiverOptions{}); done(err) }, ErrNotAllowed},
		"receive without its session": {func(done func(error)) { _, err := w.bus.Receive("s", ReceiverOptions{}); done(err) }, ErrNotAllowed},
		"peek into nothing":           {func(done func(error)) { _, err := w.bus.Peek("none", PeekOptions{}); done(err) }, ErrNotFound},
		"count nothing":               {func(done func(error)) { _, err := w.bus.Counts("none"); done(err) }, ErrNotFound},
		"describe nothing":            {func(done func(error)) { _, err := w.bus.Entity("none"); done(err) }, ErrNotFound},
		"sessions of a plain queue":   {func(done func(error)) { _, err := w.bus.Sessions("q", time.Time{}, 0, 1); done(err) }, ErrNotAllowed},
	} {
		require.ErrorIs(t, awaitDone(tc.operation), tc.want, name)
	}
	held.settleDeliveries(Settlement{}, locked...)
	require.Equal(t, []string{"2"}, held.takeBodies(9), "nothing of that did harm")
}

func TestForwarding_ReportsWhyItFailed(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "off", Status: StatusSendDisabled})
	w.createEntity(Entity{Path: "small", MaxMessageBytes: 1})
	w.createEntity(Entity{Path: "full", MaxBytes: 1})
	w.createEntity(Entity{Path: "s", RequiresSession: true})
	for to, want := range map[string]string{"off": "disabled", "small": "smaller", "full": "full", "s": "session", "none": "exist"} {
		w.createEntity(Entity{Path: "to-" + to, ForwardTo: to})
		w.sendBatch("to-"+to, textMessage("abc"))
		d := w.newReceiver("to-"+to+"/$Transfer/$DeadLetterQueue", PeekLock).takeOne()
		require.Contains(t, d.propertyOf("DeadLetterErrorDescription"), want)
		w.settleDeliveries("to-"+to+"/$Transfer/$DeadLetterQueue", Settlement{Outcome: DeadLetter, Reason: "seen"}, d)
		require.EqualValues(t, 1, w.countsOf("to-"+to).TransferDeadLetter, "it stays there")
	}
}

func TestPeek_ReadsOneSessionOrAll(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "s", RequiresSession: true})
	w.sendBatch("s", inSession("a", "1"), inSession("b", "2"), inSession("a", "3"), inSession("a", "4"), inSession("", "5"))
	c := w.holdSession("s", "a")
	got := c.takeDeliveries(2)
	c.settleDeliveries(Settlement{Outcome: Defer}, got[0])
	a, none := "a", ""
	for name, tc := range map[string]struct {
		o    PeekOptions
		want string
	}{
		"all":               {PeekOptions{Max: 9}, "12345"},
		"some":              {PeekOptions{Max: 2, From: 2}, "23"},
		"none":              {PeekOptions{}, ""},
		"a session":         {PeekOptions{Max: 9, SessionID: &a}, "134"},
		"some of it":        {PeekOptions{Max: 2, SessionID: &a}, "13"},
		"the rest of it":    {PeekOptions{Max: 9, From: 2, SessionID: &a}, "34"},
		"none of it":        {PeekOptions{SessionID: &a}, ""},
		"the empty session": {PeekOptions{Max: 9, SessionID: &none}, "5"},
	} {
		messages, err := w.bus.Peek("s", tc.o)
		require.NoError(t, err)
		seen := ""
		for _, m := range messages {
			seen += string(m.Sections)
		}
		require.Equal(t, tc.want, seen, name)
	}
}

func TestDeferredMessage_IsReceivedOnlyByItsNumber(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	w.sendBatch("q", textMessage("a"), textMessage("b"))
	c := w.newReceiver("q", PeekLock)
	c.settleDeliveries(Settlement{Outcome: Defer, Properties: map[string]any{"later": true}}, c.takeDeliveries(2)...)
	require.Empty(t, c.takeDeliveries(9))
	require.Equal(t, int64(2), w.countsOf("q").Deferred)
	var got []Delivery
	w.requireDone(func(done func(error)) {
		w.bus.ReceiveDeferred("q", []int64{2, 1}, ReceiveAndDelete, nil, func(ds []Delivery, err error) { got = ds; done(err) })
	})
	require.Equal(t, []string{"b", "a"}, bodiesOf(got))
	require.Equal(t, true, got[0].propertyOf("later"))
	require.Zero(t, w.countsOf("q"))
}

// While a dead letter is locked by its number, no receiver receives it. After the unlock it is delivered once, in its
// original position.
func TestDeadLetter_IsReceivedByItsNumber(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q", LockDuration: time.Minute})
	w.sendBatch("q", textMessage("a"), textMessage("b"), textMessage("c"))
	c := w.newReceiver("q", PeekLock)
	c.settleDeliveries(Settlement{Outcome: DeadLetter, Reason: "poison"}, c.takeDeliveries(3)...)
	const path = "q/$DeadLetterQueue"
	fetch := func(seq int64) (got []Delivery, err error) {
		err = awaitDone(func(done func(error)) {
			w.bus.ReceiveDeferred(path, []int64{seq}, PeekLock, nil, func(ds []Delivery, err error) { got = ds; done(err) })
		})
		w.waitSettled()
		return got, err
	}
	_, err := fetch(4)
	require.ErrorIs(t, err, ErrNotFound)
	two, err := fetch(2)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, bodiesOf(two))
	require.Equal(t, start.Add(time.Minute), two[0].LockedUntil)
	_, err = fetch(2)
	require.ErrorIs(t, err, ErrNotFound, "it is locked")

	dead := w.newReceiver(path, PeekLock)
	require.Equal(t, []string{"a"}, dead.takeBodies(1))
	require.Equal(t, []string{"c"}, dead.takeBodies(2), "the locked one is passed over")
	w.settleDeliveries(path, Settlement{Outcome: Abandon}, two...)
	require.Equal(t, []string{"b"}, dead.takeBodies(1), "it is free again")
	w.advanceTime(time.Minute)
	three, err := fetch(3)
	require.NoError(t, err, "its lock has ended")
	require.Equal(t, []string{"a", "b"}, dead.takeBodies(9))
	w.settleDeliveries(path, Settlement{Outcome: Complete}, three...)
	require.EqualValues(t, 2, w.countsOf("q").DeadLetter)
	w.advanceTime(time.Minute)
	require.Equal(t, []string{"a", "b"}, dead.takeBodies(9))
}

func TestOpen_RefusesADamagedStore(t *testing.T) {
	for name, tc := range map[string]struct {
		table byte
		value string
		opens bool
		want  error
	}{
		"entity":        {tableEntity, "{", false, disk.ErrDamaged},
		"rule":          {tableRule, "{", false, disk.ErrDamaged},
		"rule's filter": {tableRule, `{"Rule":{"Name":"x","Filter":{"SQL":"="}}}`, false, disk.ErrDamaged},
		"format":        {tableMeta, "\x00\x00\x00\x00\x00\x00\x00\x07", false, disk.ErrFormat},
		"message":       {tableMessage, "\x00", true, disk.ErrDamaged},
		"newer message": {tableMessage, "\x02newer", true, disk.ErrFormat},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.createEntity(Entity{Path: "t", Kind: Topic})
			w.createEntity(Entity{Path: "t/Subscriptions/s", Kind: Subscription})
			w.sendBatch("t", textMessage("a"))
			require.NoError(t, w.bus.Close())
			require.NoError(t, w.store.Update(t.Context(), func(tx disk.Tx) error {
				var key []byte
				tx.Scan([]byte{tc.table}, []byte{tc.table + 1}, func(k, _ []byte) bool { key = append(key, k...); return false })
				tx.Put(key, []byte(tc.value))
				return nil
			}))
			b, err := Open(w.store, Options{Codec: jsonCodec{}, Clock: w.clock})
			if !tc.opens {
				require.ErrorIs(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			_, err = b.Peek("t/subscriptions/s", PeekOptions{Max: 1})
			require.ErrorIs(t, err, tc.want)
			lost := make(chan error, 1)
			r, err := b.Receive("t/subscriptions/s", ReceiverOptions{Lost: func(err error) { lost <- err }})
			require.NoError(t, err)
			r.AddCredit(1)
			require.ErrorIs(t, <-lost, tc.want)
			require.ErrorIs(t, awaitDone(func(done func(error)) { b.Send("t", []Message{textMessage("b")}, done) }), disk.ErrBroken)
			require.NoError(t, b.Close())
		})
	}
}

func TestOpen_RequiresACodec(t *testing.T) {
	_, err := Open(disk.NewMemory(), Options{})
	require.ErrorIs(t, err, ErrInvalid)
}
