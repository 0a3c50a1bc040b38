package bus

import (
	"io"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// Options are what a Bus needs besides its store. Zero values are good.
type Options struct {
	Clock Clock     // the time package
	Rand  io.Reader // crypto/rand; for lock tokens and message ids
	Codec Codec     // needed for rules, and for properties to modify
}

// A Clock tells the time, and calls back once when a while has passed.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is what a Clock started. Stop says whether it kept f from running.
type Timer interface{ Stop() bool }

// A Bus is one namespace. It is safe for use by many goroutines.
type Bus struct{}

// A Receiver takes messages of one queue, or of one session that it holds.
type Receiver struct{}

// Open reads the entities of a store, which stays the caller's to close.
//
// All methods with a done call it exactly once, from the same place as
// Deliver and Lost: in order, one at a time, not under a lock of the bus. They
// call it when what they did, and all it rests on, is committed.
func Open(store disk.Store, o Options) (*Bus, error) { panic("not built yet") }

// Entities. Path may end in /$DeadLetterQueue or /$Transfer/$DeadLetterQueue
// wherever messages are received, peeked or settled, in any case.

func (b *Bus) Create(e Entity, done func(error)) { panic("not built yet") }
func (b *Bus) Update(e Entity, done func(error)) { panic("not built yet") }
func (b *Bus) Delete(path string, done func(error)) { panic("not built yet") }
func (b *Bus) Entity(path string) (Entity, error) { panic("not built yet") }
func (b *Bus) Entities() []Entity { panic("not built yet") }
func (b *Bus) Counts(path string) (Counts, error) { panic("not built yet") }
func (b *Bus) AddRule(subscription string, r Rule, done func(error)) { panic("not built yet") }
func (b *Bus) DeleteRule(subscription, name string, done func(error)) { panic("not built yet") }
func (b *Bus) Rules(subscription string) ([]Rule, error) { panic("not built yet") }

// Messages in. A batch is stored as a whole or not at all.

func (b *Bus) Send(path string, batch []Message, done func(error)) { panic("not built yet") }
func (b *Bus) Schedule(path string, batch []Message, done func([]int64, error)) { panic("not built yet") }
func (b *Bus) CancelScheduled(path string, sequenceNumbers []int64, done func(error)) { panic("not built yet") }

// Messages out.

func (b *Bus) Receive(path string, o ReceiverOptions) (*Receiver, error) { panic("not built yet") }
func (b *Bus) AcceptSession(path string, want SessionRequest, o ReceiverOptions, done func(*Receiver, error)) (cancel func()) { panic("not built yet") }
func (r *Receiver) AddCredit(n int) { panic("not built yet") }
func (r *Receiver) Drain(done func(left int)) { panic("not built yet") }
func (r *Receiver) Close() { panic("not built yet") }
func (r *Receiver) SessionID() string { panic("not built yet") }
func (r *Receiver) LockedUntil() time.Time { panic("not built yet") }

func (b *Bus) Settle(path string, tokens []LockToken, how Settlement, done func(error)) { panic("not built yet") }
func (b *Bus) RenewLocks(path string, tokens []LockToken, done func([]time.Time, error)) { panic("not built yet") }
func (b *Bus) ReceiveDeferred(path string, sequenceNumbers []int64, mode Mode, session *string, done func([]Delivery, error)) { panic("not built yet") }
func (b *Bus) Peek(path string, o PeekOptions) ([]Message, error) { panic("not built yet") }

// Sessions. All but the list need the session to be locked.

func (b *Bus) RenewSession(path, id string, done func(time.Time, error)) { panic("not built yet") }
func (b *Bus) SessionState(path, id string, done func([]byte, error)) { panic("not built yet") }
func (b *Bus) SetSessionState(path, id string, state []byte, done func(error)) { panic("not built yet") }
func (b *Bus) Sessions(path string, since time.Time, skip, top int) ([]string, error) { panic("not built yet") }

// Close answers what is under way, and calls Lost of all receivers.
func (b *Bus) Close() error { panic("not built yet") }
