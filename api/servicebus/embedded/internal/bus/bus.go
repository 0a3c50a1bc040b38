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

// Options configure a Bus. Codec is required.
type Options struct {
	Codec Codec
	Clock Clock     // the default uses package time
	Rand  io.Reader // source of lock tokens and message ids; the default is crypto/rand

	Version string // program version, stored together with the format
}

// A Clock provides the time and timers.
type Clock interface {
	// Now returns the current time, like time.Now.
	Now() time.Time

	// AfterFunc calls f in another goroutine after d, like time.AfterFunc.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is a timer of a Clock.
type Timer interface {
	// Stop stops the timer, and reports whether this prevents the call to f.
	Stop() bool
}

// A Bus is one namespace. It is safe for concurrent use.
//
// A method with a done parameter calls done exactly once, after its changes and the data that it has read are
// committed. One goroutine makes all calls to done, Deliver and Lost, in order and without the lock of the bus.
type Bus struct {
	clock Clock
	rand  io.Reader
	codec Codec

	callbacks *callQueue
	timers    sync.WaitGroup // pending timers
	wake      chan struct{}  // signals that writes are pending; capacity 1
	ended     chan struct{}  // closed after the goroutine that commits has ended
	broke     chan error     // receives the error after which the bus serves nothing; capacity 1

	mu        sync.Mutex // mu guards the fields below
	journal   *journal
	broken    error // error of the first failed commit
	closed    bool
	deadlines deadlines
	order     uint64 // order of the newest deadline
	timer     Timer
	timerAt   time.Time
	entities  map[string]*entity // all entities, by lower-case path
	purges    []uint32           // numbers of deleted entities whose data must still be removed
	newest    uint32             // highest number of an entity
	locks     map[LockToken]*messageLock
	changed   map[*messageQueue]struct{} // queues whose counters must be stored
}

// Open reads the entities from a store. It starts two goroutines, which Close ends. The caller closes the store after
// the bus.
func Open(store disk.Store, o Options) (*Bus, error) {
	if o.Codec == nil {
		return nil, fmt.Errorf("%w: a codec is required", ErrInvalid)
	}
	b := &Bus{
		clock: o.Clock, rand: o.Rand, codec: o.Codec, callbacks: newCallQueue(),
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
	go b.callbacks.runCalls()
	go b.commitAll()
	b.lockAndCatchUp()
	b.scheduleAndUnlock()
	return b, nil
}

// Close completes running operations and calls Lost for all receivers. It waits until all calls to done, Deliver and
// Lost have returned, so these functions must not call Close. Further calls have no effect.
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
	b.callbacks.closeAndWait()
	return nil
}

// lockAndCatchUp locks the bus and runs all deadlines that are due.
func (b *Bus) lockAndCatchUp() {
	b.mu.Lock()
	if b.checkUsable() == nil {
		b.catchUp()
	}
}

// scheduleAndUnlock ends an operation: it starts the commit of its writes and unlocks the bus.
func (b *Bus) scheduleAndUnlock() {
	if b.journal.failure != nil {
		b.endService(b.journal.failure)
	}
	if len(b.journal.pending.writes) > 0 && !b.closed {
		select {
		case b.wake <- struct{}{}:
		default: // a signal is already pending
		}
	}
	b.setTimer()
	b.mu.Unlock()
	b.callbacks.callRemaining()
}

func (b *Bus) checkUsable() error {
	if b.closed {
		return ErrClosed
	}
	return b.broken
}

// runOperation runs one operation and then calls done. An operation that returns an error must not have written
// anything.
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

// replyCommitted calls call after all earlier writes are committed. Thus no result, including an error, depends on data
// that a crash could lose.
func (b *Bus) replyCommitted(call func(broken error)) {
	if !b.journal.replyOnceCommitted(call) {
		b.callbacks.addCall(func() { call(nil) })
	}
}

// commitAll commits pending writes, one generation after the next, until the bus is closed.
func (b *Bus) commitAll() {
	defer close(b.ended)
	for range b.wake {
		b.commitPending()
	}
	b.commitPending() // a last commit stores the writes made before Close
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
			b.endService(err)
		}
		b.answerGeneration(g)
		b.serveCommitted(g)
	}
}

func (b *Bus) answerGeneration(g *generation) {
	broken := b.broken
	for _, reply := range g.replies {
		b.callbacks.addCall(func() { reply(broken) })
	}
}

// serveCommitted serves the lanes and queues that the committed generation g has changed.
func (b *Bus) serveCommitted(g *generation) {
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

// Broken returns a channel that receives an error after a failed commit.
func (b *Bus) Broken() <-chan error { return b.broke }

// endService makes all operations fail with err. After a failed commit, it is unknown which writes are stored, so memory
// may differ from the store.
func (b *Bus) endService(err error) {
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
