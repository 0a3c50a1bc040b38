package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// Options are what a Bus needs besides its store. Codec is required; the zero
// values of the others are good.
type Options struct {
	Codec Codec
	Clock Clock     // the time package
	Rand  io.Reader // crypto/rand; for lock tokens and message ids

	Version string // of the program, for the format of a new store
}

// A Clock tells the time, and calls back when a while has passed.
type Clock interface {
	// Now is time.Now.
	Now() time.Time

	// AfterFunc is time.AfterFunc. It must not call f itself.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is what a Clock started.
type Timer interface {
	// Stop says whether it kept f from running.
	Stop() bool
}

// A Bus is one namespace. It is safe for use by many goroutines.
//
// Methods with a done call it exactly once, from the same place as Deliver and
// Lost: in order, one at a time, not under a lock of the bus. They call it
// when what they did, and all that it rests on, is committed.
type Bus struct {
	clock Clock
	rand  io.Reader
	codec Codec

	outbox *callQueue
	timers sync.WaitGroup // set and not yet run
	wake   chan struct{}  // holds one: something is pending
	ended  chan struct{}  // closed when the committing goroutine has ended
	broke  chan error     // holds one: why there is no service any more

	mu        sync.Mutex // guards all below
	journal   *journal
	broken    error // of the first commit that failed
	closed    bool
	deadlines deadlines
	order     uint64 // of the newest deadline
	timer     Timer
	timerAt   time.Time
	entities  map[string]*entity // by lower-case path
	purges    []uint32           // deleted entities with remains
	newest    uint32             // the newest entity number
	locks     map[LockToken]*messageLock
	changed   map[*messageQueue]struct{} // whose counters are to be written
}

// Open reads the entities of a store, which stays the caller's to close. It
// starts two goroutines, which end with Close.
func Open(store disk.Store, o Options) (*Bus, error) {
	if o.Codec == nil {
		return nil, fmt.Errorf("%w: a codec is required", ErrInvalid)
	}
	b := &Bus{
		clock: o.Clock, rand: o.Rand, codec: o.Codec, outbox: newCallQueue(),
		wake: make(chan struct{}, 1), ended: make(chan struct{}), broke: make(chan error, 1),
		journal: newJournal(store), entities: map[string]*entity{},
		locks: map[LockToken]*messageLock{}, changed: map[*messageQueue]struct{}{},
	}
	if b.clock == nil {
		b.clock = realClock{}
	}
	if b.rand == nil {
		b.rand = rand.Reader
	}
	if err := storeFormat(o.Version).Prepare(context.Background(), store); err != nil {
		return nil, err
	}
	if err := b.loadEntities(); err != nil {
		return nil, err
	}
	go b.outbox.runCalls()
	go b.commitAll()
	b.lockAndCatchUp()
	b.scheduleAndUnlock()
	return b, nil
}

// Close answers what is under way and calls Lost of all receivers. It must not
// be called from a done, Deliver or Lost, and returns when the last of these
// has. Closing twice does no harm.
func (b *Bus) Close() error {
	b.mu.Lock()
	first := !b.closed
	if first {
		b.endReceivers(ErrClosed)
		b.closed = true
		b.stopTimer()
		close(b.wake)
	}
	b.mu.Unlock()
	<-b.ended
	b.timers.Wait()
	b.outbox.closeAndWait()
	return nil
}

// lockAndCatchUp begins an operation, after all that is due before it.
func (b *Bus) lockAndCatchUp() {
	b.mu.Lock()
	if b.checkUsable() == nil {
		b.catchUp()
	}
}

// scheduleAndUnlock ends an operation: what it changed is on its way to the store, what it
// has to say to those outside.
func (b *Bus) scheduleAndUnlock() {
	if b.journal.failure != nil {
		b.breakDown(b.journal.failure)
	}
	if len(b.journal.pending.writes) > 0 && !b.closed {
		select {
		case b.wake <- struct{}{}:
		default: // it is awake
		}
	}
	b.setTimer()
	b.mu.Unlock()
	b.outbox.callRemaining()
}

func (b *Bus) checkUsable() error {
	if b.closed {
		return ErrClosed
	}
	return b.broken
}

// runOperation runs one operation and answers it. An operation that fails must not have
// written anything.
func (b *Bus) runOperation(done func(error), operation func() error) {
	b.lockAndCatchUp()
	err := b.checkUsable()
	if err == nil {
		err = operation()
	}
	b.replyCommitted(func(broken error) {
		if broken != nil {
			err = broken
		}
		done(err)
	})
	b.scheduleAndUnlock()
}

// replyCommitted has call made when all that was written so far is committed: nobody
// learns of what a crash could still undo, a refusal because of it included.
func (b *Bus) replyCommitted(call func(broken error)) {
	if !b.journal.replyOnceCommitted(call) {
		b.outbox.addCall(func() { call(nil) })
	}
}

// commitAll commits one generation after the other until the bus is closed.
func (b *Bus) commitAll() {
	defer close(b.ended)
	for range b.wake {
		b.commitPending()
	}
	b.commitPending() // what came in last
}

func (b *Bus) commitPending() {
	for {
		b.mu.Lock()
		b.writeCounters()
		g := b.journal.beginCommit()
		b.mu.Unlock()
		if g == nil {
			return
		}
		err := b.journal.saveGeneration(g)
		b.mu.Lock()
		if err != nil {
			b.breakDown(err)
		}
		b.answerGeneration(g)
		b.leaveCommitted(g)
	}
}

func (b *Bus) answerGeneration(g *generation) {
	broken := b.broken
	for _, reply := range g.replies {
		b.outbox.addCall(func() { reply(broken) })
	}
}

// leaveCommitted looks at what became visible with a commit.
func (b *Bus) leaveCommitted(g *generation) {
	b.journal.endCommit(g)
	if b.checkUsable() == nil {
		b.catchUp()
		for l := range g.lanes {
			b.handOut(l)
		}
		for q := range g.queues {
			b.grantSessions(q)
			b.scheduleFirst(q)
		}
		b.purgeSome()
	}
	b.scheduleAndUnlock()
}

// Broken yields an error, once, when nothing is accepted or settled any more.
func (b *Bus) Broken() <-chan error { return b.broke }

// breakDown ends all service: after a failed commit nobody knows what is
// stored, and what is in memory may be ahead of it.
func (b *Bus) breakDown(err error) {
	if b.broken != nil {
		return
	}
	if !errors.Is(err, disk.ErrBroken) {
		err = fmt.Errorf("%w: %w", disk.ErrBroken, err)
	}
	b.endReceivers(err)
	b.broken = err
	b.broke <- err
	pending := b.journal.pending
	b.answerGeneration(pending)
	b.journal.pending = newGeneration(pending.number + 1)
}

// newToken returns a random UUID.
func (b *Bus) newToken() LockToken {
	token, err := uuid.NewRandomFromReader(b.rand)
	if err != nil {
		b.journal.failure = fmt.Errorf("draw a lock token: %w", err)
	}
	return LockToken(token)
}
