package bus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A failingStore fails one commit, either before or after the writes are stored. All later commits fail, too, as in
// package disk.
type failingStore struct {
	disk.Store
	left  int // commits until the failure
	after bool
	full  bool
}

func (s *failingStore) Update(ctx context.Context, fn func(disk.Tx) error) error {
	s.left--
	switch {
	case s.left < 0:
		return disk.ErrBroken
	case s.left > 0:
		return s.Store.Update(ctx, fn)
	case s.after:
		return errors.Join(disk.ErrBroken, s.Store.Update(ctx, fn))
	case s.full:
		return fmt.Errorf("%w: %w", disk.ErrBroken, disk.ErrFull)
	}
	return disk.ErrBroken
}

// A crashClient records which operations the bus has confirmed, and which operations it may have stored.
type crashClient struct {
	sent, maybeSent map[string]bool
	done, maybeDone map[string]bool
	receiving       bool
	lost            error
}

// runUntilBroken sends and receives messages until the bus fails. It records the results.
func (c *crashClient) runUntilBroken(t *testing.T, b *Bus, round int) (broken error) {
	note := func(sure, maybe map[string]bool, ids []string, err error) error {
		for _, id := range ids {
			if err == nil {
				sure[id] = true
			} else {
				maybe[id] = true
			}
		}
		return err
	}
	for i := range 3 {
		var batch []Message
		var ids []string
		for k := range 3 {
			id := fmt.Sprintf("%d-%d-%d", round, i, k)
			batch, ids = append(batch, inSession("s", id)), append(ids, id)
		}
		if err := awaitDone(func(done func(error)) { b.Send("q", batch, done) }); note(c.sent, c.maybeSent, ids, err) != nil {
			return err
		}
	}
	arrived := make(chan Delivery, 100)
	session := "s"
	granted := make(chan *Receiver, 1)
	c.receiving = true
	b.AcceptSession("q", SessionRequest{ID: &session}, ReceiverOptions{Deliver: func(d Delivery) { arrived <- d }, Lost: func(err error) { c.lost = err }},
		func(r *Receiver, err error) { require.NoError(t, err); granted <- r })
	(<-granted).AddCredit(4)
	for _, outcome := range []Outcome{Complete, Abandon, DeadLetter, Complete} {
		d := <-arrived
		id := string(d.Sections)
		err := awaitDone(func(done func(error)) { b.Settle("q", []LockToken{d.Token}, Settlement{Outcome: outcome}, done) })
		if outcome == Complete {
			err = note(c.done, c.maybeDone, []string{id}, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkReopened checks that a reopened bus contains every confirmed message and no completed message.
func (c *crashClient) checkReopened(t *testing.T, b *Bus) {
	found := map[string]int{}
	for _, path := range []string{"q", "q/$DeadLetterQueue"} {
		messages, err := b.Peek(path, PeekOptions{Max: 1000})
		require.NoError(t, err)
		for _, m := range messages {
			found[string(m.Sections)]++
		}
	}
	for id, n := range found {
		require.Equal(t, 1, n, "%s is there once", id)
		require.True(t, c.sent[id] || c.maybeSent[id], id)
		require.False(t, c.done[id], "%s was completed", id)
	}
	for id := range c.sent {
		require.True(t, found[id] == 1 || c.done[id] || c.maybeDone[id], "%s is lost", id)
	}
	counts, err := b.Counts("q")
	require.NoError(t, err)
	require.EqualValues(t, len(found), counts.Active+counts.DeadLetter)
}

func TestFailedCommit_LosesAndResurrectsNoMessage(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 2; ; at++ { // the first commit creates the queue
			store := disk.NewMemory()
			faulty := &failingStore{Store: store, left: at, after: after, full: at%2 == 0}
			b, err := Open(faulty, Options{Codec: jsonCodec{}, Clock: newClock()})
			require.NoError(t, err)
			c := &crashClient{sent: map[string]bool{}, maybeSent: map[string]bool{}, done: map[string]bool{}, maybeDone: map[string]bool{}}
			broken := awaitDone(func(done func(error)) { b.Create(Entity{Path: "q", Kind: Queue, RequiresSession: true}, done) })
			if broken == nil {
				broken = c.runUntilBroken(t, b, at)
			}
			if broken != nil {
				require.ErrorIs(t, broken, disk.ErrBroken)
				_, err := b.Receive("q", ReceiverOptions{})
				require.ErrorIs(t, err, disk.ErrBroken)
			}
			require.NoError(t, b.Close())
			if broken != nil && c.receiving {
				require.ErrorIs(t, c.lost, disk.ErrBroken, "receivers are told")
			}
			b, err = Open(store, Options{Codec: jsonCodec{}, Clock: newClock()})
			require.NoError(t, err)
			if _, err := b.Entity("q"); err == nil {
				c.checkReopened(t, b)
			}
			require.NoError(t, b.Close())
			if broken == nil {
				require.Greater(t, at, 6, "each commit failed once")
				break
			}
		}
	}
}

const childFolder = "BUS_TEST_CHILD_FOLDER"

// sendUntilKilled runs in the child process. It sends and completes messages, and prints every confirmed operation,
// until the process is killed.
func sendUntilKilled(dir string) {
	store, err := disk.Open(dir)
	panicOn(err)
	b, err := Open(store, Options{Codec: jsonCodec{}})
	panicOn(err)
	var printing sync.Mutex
	say := func(what string, ids ...string) {
		printing.Lock()
		defer printing.Unlock()
		for _, id := range ids {
			fmt.Println("child", what, id)
		}
	}
	c, err := b.Receive("q", ReceiverOptions{Deliver: func(d Delivery) {
		id := string(d.Sections)
		say("completing", id)
		b.Settle("q", []LockToken{d.Token}, Settlement{}, func(err error) {
			if err == nil {
				say("completed", id)
			}
		})
	}})
	panicOn(err)
	var senders sync.WaitGroup
	began := time.Now().UnixNano()
	for s := range 4 {
		senders.Go(func() {
			for n := 0; ; n++ {
				var ids []string
				var batch []Message
				for k := range 3 {
					id := fmt.Sprintf("%d-%d-%d-%d", began, s, n, k)
					ids, batch = append(ids, id), append(batch, textMessage(id))
				}
				say("sending", ids...)
				panicOn(awaitDone(func(done func(error)) { b.Send("q", batch, done) }))
				say("sent", ids...)
				c.AddCredit(2)
			}
		})
	}
	senders.Wait()
}

func panicOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestKill_LosesAndResurrectsNoMessage(t *testing.T) {
	dir := t.TempDir()
	inStore := func(use func(b *Bus)) {
		store, err := disk.Open(dir)
		require.NoError(t, err)
		b, err := Open(store, Options{Codec: jsonCodec{}})
		require.NoError(t, err)
		use(b)
		require.NoError(t, b.Close())
		require.NoError(t, store.Close())
	}
	inStore(func(b *Bus) {
		require.NoError(t, awaitDone(func(done func(error)) { b.Create(Entity{Path: "q", Kind: Queue}, done) }))
	})
	said := map[string]map[string]bool{"sending": {}, "sent": {}, "completing": {}, "completed": {}}
	for round := range 3 {
		killChild(t, dir, 200+100*round, said)
		inStore(func(b *Bus) {
			found := map[string]bool{}
			for from := int64(0); ; {
				page, err := b.Peek("q", PeekOptions{From: from, Max: 500})
				require.NoError(t, err)
				for _, m := range page {
					id := string(m.Sections)
					require.False(t, found[id], "%s occurs twice", id)
					require.True(t, said["sending"][id])
					require.False(t, said["completed"][id], "%s is back", id)
					found[id], from = true, m.SequenceNumber+1
				}
				if len(page) == 0 {
					break
				}
			}
			for id := range said["sent"] {
				require.True(t, found[id] || said["completing"][id], "%s is lost", id)
			}
			for id := range found {
				stem := id[:strings.LastIndexByte(id, '-')]
				for k := range 3 {
					other := fmt.Sprint(stem, "-", k)
					require.True(t, found[other] || said["completing"][other], "%s is there without %s", id, other)
				}
			}
		})
	}
}

// killChild runs the child process and kills it after a number of printed lines.
func killChild(t *testing.T, dir string, after int, said map[string]map[string]bool) {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	n := 0
	for lines.Scan() {
		var what, id string
		if _, err := fmt.Sscanf(lines.Text(), "child %s %s", &what, &id); err != nil {
			continue
		}
		if said[what][id] = true; what == "completed" {
			if n++; n == after {
				require.NoError(t, child.Process.Kill())
			}
		}
	}
	require.GreaterOrEqual(t, n, after)
	require.Error(t, child.Wait(), "it was killed")
}

func TestSend_IsBusyWhileManyWritesWait(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q", MaxBytes: 1 << 40})
	slow := &slowStore{Store: w.store, proceed: make(chan struct{})}
	require.NoError(t, w.bus.Close())
	b, err := Open(slow, Options{Codec: jsonCodec{}})
	require.NoError(t, err)
	answers := make(chan error, 1000)
	batch := make([]Message, 20)
	for i := range batch {
		batch[i].Sections = make([]byte, 250<<10)
	}
	for range 40 {
		b.Send("q", batch, func(err error) { answers <- err })
	}
	close(slow.proceed)
	stored, busy := 0, 0
	for range 40 {
		if err := <-answers; errors.Is(err, ErrBusy) {
			busy++
		} else {
			require.NoError(t, err)
			stored++
		}
	}
	require.NoError(t, b.Close())
	w.openBus()
	require.Greater(t, busy, 10)
	require.EqualValues(t, stored*20, w.countsOf("q").Active)
}

type slowStore struct {
	disk.Store
	proceed chan struct{}
}

func (s *slowStore) Update(ctx context.Context, fn func(disk.Tx) error) error {
	<-s.proceed
	return s.Store.Update(ctx, fn)
}

func TestAnswers_WaitForTheCommit(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q", DuplicateWindow: time.Minute})
	w.sendBatch("q", textMessage("old"))
	require.NoError(t, w.bus.Close())
	slow := &slowStore{Store: w.store, proceed: make(chan struct{})}
	b, err := Open(slow, Options{Codec: jsonCodec{}, Clock: w.clock})
	require.NoError(t, err)
	got := make(chan Delivery, 10)
	r, err := b.Receive("q", ReceiverOptions{Deliver: func(d Delivery) { got <- d }})
	require.NoError(t, err)
	r.AddCredit(10)
	old := <-got
	answers := make(chan string, 10)
	note := func(what string) func(error) {
		return func(err error) { answers <- fmt.Sprint(what, " ", err) }
	}
	b.Send("q", []Message{textMessage("new")}, note("sent"))
	b.Send("q", []Message{textMessage("new")}, note("duplicate"))
	b.Settle("q", []LockToken{old.Token}, Settlement{}, note("completed"))
	b.Settle("q", []LockToken{old.Token}, Settlement{}, note("again"))
	r.AddCredit(1)
	b.callbacks.waitIdle()
	seen, err := b.Peek("q", PeekOptions{Max: 9})
	require.NoError(t, err)
	require.Len(t, seen, 1, "only what is committed")
	require.Empty(t, answers)
	require.Empty(t, got)
	close(slow.proceed)
	require.Equal(t, []string{"sent <nil>", "duplicate <nil>", "completed <nil>", "again " + ErrLockLost.Error()},
		[]string{<-answers, <-answers, <-answers, <-answers})
	require.Equal(t, "new", string((<-got).Sections))
	require.NoError(t, b.Close())
	w.openBus()
}

func TestBus_RunsInASynctestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := Open(disk.NewMemory(), Options{Codec: jsonCodec{}})
		require.NoError(t, err)
		require.NoError(t, awaitDone(func(done func(error)) { b.Create(Entity{Path: "q", Kind: Queue, LockDuration: time.Minute}, done) }))
		began := time.Now()
		got := make(chan Delivery, 10)
		r, err := b.Receive("q", ReceiverOptions{Deliver: func(d Delivery) { got <- d }})
		require.NoError(t, err)
		r.AddCredit(10)
		later := textMessage("a")
		later.ScheduledFor = began.Add(time.Hour)
		require.NoError(t, awaitDone(func(done func(error)) { b.Send("q", []Message{later}, done) }))
		require.EqualValues(t, 0, (<-got).DeliveryCount)
		require.Equal(t, time.Hour, time.Since(began).Truncate(time.Second))
		require.EqualValues(t, 1, (<-got).DeliveryCount)
		require.Equal(t, time.Hour+time.Minute, time.Since(began).Truncate(time.Second))
		require.NoError(t, b.Close())
	})
}

func TestClose_AnswersAllWaitingRequests(t *testing.T) {
	w := newFixture(t)
	w.createEntity(Entity{Path: "q"})
	w.createEntity(Entity{Path: "s", RequiresSession: true})
	c := w.newReceiver("q", PeekLock)
	var waited, sent error
	w.bus.AcceptSession("s", SessionRequest{}, ReceiverOptions{}, func(_ *Receiver, err error) { waited = err })
	sent = ErrBusy
	w.bus.Send("q", []Message{textMessage("a")}, func(err error) { sent = err })
	require.NoError(t, w.bus.Close())
	require.NoError(t, w.bus.Close())
	require.NoError(t, sent)
	require.ErrorIs(t, waited, ErrClosed)
	require.Equal(t, []error{ErrClosed}, c.lost)
	c.Close()
	c.AddCredit(1)
	c.Drain(func(int) {})
	require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.Send("q", []Message{textMessage("b")}, done) }), ErrClosed)
	_, err := w.bus.Peek("q", PeekOptions{Max: 1})
	require.ErrorIs(t, err, ErrClosed)
	w.openBus()
	require.EqualValues(t, 1, w.countsOf("q").Active)
}
