package bus

import (
	"errors"
	"time"
)

// Errors say what happened; the wire layer turns each into its condition.
var (
	// ErrNotFound reports an entity, rule or message that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists reports the creation of what exists already.
	ErrExists = errors.New("already exists")
	// ErrInvalid reports a request that can never succeed: change it.
	ErrInvalid = errors.New("invalid")
	// ErrNotAllowed reports a request that the kind of entity forbids, such as
	// a message without session id for an entity that requires sessions.
	ErrNotAllowed = errors.New("not allowed")
	// ErrDisabled reports an entity whose status forbids the operation.
	ErrDisabled = errors.New("the entity is disabled")
	// ErrLockLost reports a lock token that is not, or no longer, valid.
	ErrLockLost = errors.New("the lock is lost; the message will come again unless it was settled")
	// ErrSessionLocked reports a session that another receiver holds.
	ErrSessionLocked = errors.New("the session is locked by another receiver; accept another one, or try again later")
	// ErrSessionLockLost reports a session that nobody holds any more.
	ErrSessionLockLost = errors.New("the session lock is lost; accept the session again")
	// ErrTimeout reports that no session became available in time.
	ErrTimeout = errors.New("no session became available in time; try again")
	// ErrQuotaExceeded reports an entity that is full.
	ErrQuotaExceeded = errors.New("the entity is full; receive from it first")
	// ErrTooLarge reports a message or session state beyond its limit.
	ErrTooLarge = errors.New("too large")
	// ErrBusy reports that too much waits for the disk: pause, then retry.
	ErrBusy = errors.New("too much waits to be written; try again in a moment")
	// ErrClosed reports the use of a bus after Close.
	ErrClosed = errors.New("the bus is closed")
)

// A Message is what a sender sent and what the bus knows about it.
type Message struct {
	// What the sender says. The bus keeps these to decide; on the wire they
	// stand in Sections as well.
	ID               string
	SessionID        *string // nil: none; the empty string is a legal id
	PartitionKey     string
	Subject          string
	To               string
	ReplyTo          string
	ReplyToSessionID string
	CorrelationID    string
	ContentType      string
	TTL              time.Duration // 0: as long as the entity allows
	ScheduledFor     time.Time     // zero, or in the past: at once

	// ApplicationProperties is the encoded section, and Sections all other
	// encoded sections; only the Codec looks into the first, and nobody into
	// the second.
	ApplicationProperties []byte
	Sections              []byte

	// What the bus assigns.
	SequenceNumber         int64
	EnqueuedSequenceNumber int64 // where it first entered the bus, if that was another entity
	EnqueuedAt             time.Time
	ExpiresAt              time.Time // zero: never
	DeliveryCount          uint32    // failed deliveries so far
	State                  State
	DeadLetterSource       string // of a dead letter: the entity it was in
	// Rewritten says that the bus changed a field of the sender, so that the
	// fields win over what Sections says: a rule's action did, or the sender
	// gave no ID.
	Rewritten bool
}

// State is where in its life a message is. The numbers are those of the wire.
type State int32

// The states of a message.
const (
	Active    State = 0
	Deferred  State = 1
	Scheduled State = 2
)

// A Codec reads and changes encoded application properties. Values are
// string, bool, int64, uint64, float64, time.Time, []byte, nil, or
// another type, which filters see as unknown.
type Codec interface {
	// Decode reads an encoded section; an empty one has no properties.
	Decode(section []byte) (map[string]any, error)

	// Merge returns section with changes applied and without those named in
	// remove.
	Merge(section []byte, changes map[string]any, remove []string) ([]byte, error)
}

// Kind says what an entity is.
type Kind string

// The kinds of entities.
const (
	Queue        Kind = "queue"
	Topic        Kind = "topic"
	Subscription Kind = "subscription"
)

// Status says what an entity can be used for.
type Status string

// The statuses of an entity. The zero value counts as StatusActive.
const (
	StatusActive          Status = "Active"
	StatusDisabled        Status = "Disabled"
	StatusSendDisabled    Status = "SendDisabled"
	StatusReceiveDisabled Status = "ReceiveDisabled"
)

// An Entity is the configuration of a queue, a topic or a topic subscription.
// Zero values mean the defaults of the comments.
type Entity struct {
	// Path is "queue", "topic" or "topic/Subscriptions/name". Upper and lower
	// case are the same.
	Path string
	Kind Kind

	RequiresSession        bool
	LockDuration           time.Duration // 1 minute
	MaxDeliveryCount       uint32        // 10
	DefaultTTL             time.Duration // none
	DeadLetterOnExpiry     bool
	DeadLetterOnFilterFail bool          // of subscriptions: messages whose filter cannot be evaluated
	DuplicateWindow        time.Duration // 0: no duplicate detection
	MaxBytes               int64         // 1 GiB, dead letters included; of topics, all its subscriptions
	MaxMessageBytes        int64         // 256 KiB
	ForwardTo              string
	ForwardDeadLettersTo   string
	Status                 Status
	UserMetadata           string

	CreatedAt time.Time // set by the bus
	UpdatedAt time.Time // set by the bus
}

// Counts are what an entity holds right now.
type Counts struct {
	Active             int64
	Deferred           int64
	Scheduled          int64
	DeadLetter         int64
	TransferDeadLetter int64
	Bytes              int64
	Subscriptions      int
}

// A Rule decides which messages of a topic a subscription gets, and how they
// are changed on the way.
type Rule struct {
	Name   string
	Filter Filter
	Action string // SET and REMOVE statements; empty: none
}

// A Filter is exactly one of its kinds. The zero Filter lets all pass.
type Filter struct {
	SQL         string         `json:",omitempty"`
	Parameters  map[string]any `json:",omitempty"` // of SQL, named with their @
	Correlation *Correlation   `json:",omitempty"`
	False       bool           `json:",omitempty"`
}

// A Correlation passes a message that has all the values given here.
type Correlation struct {
	CorrelationID, MessageID, To, ReplyTo, Subject, SessionID, ReplyToSessionID, ContentType string
	Properties                                                                               map[string]any
}

// Mode says what becomes of a message when it is handed out.
type Mode int

// The modes of receiving.
const (
	PeekLock Mode = iota
	ReceiveAndDelete
)

// A LockToken names one lock on one message.
type LockToken [16]byte

// A Delivery is a message handed to a receiver.
type Delivery struct {
	Message
	Token       LockToken // zero when received and deleted
	LockedUntil time.Time // zero when received and deleted
}

// ReceiverOptions say how to receive. The bus calls Deliver and Lost one at a
// time, in order, and never while it holds a lock of its own: they may call
// the bus, but must not block.
type ReceiverOptions struct {
	Mode    Mode
	Deliver func(Delivery)
	// Lost, if it is set, is called at most once, when the receiver gets
	// nothing more although nobody closed it: ErrSessionLockLost, ErrNotFound
	// (the entity was deleted), ErrDisabled, ErrClosed, or disk.ErrBroken.
	Lost func(error)
}

// A SessionRequest asks for one session.
type SessionRequest struct {
	ID      *string       // nil: the unlocked session with the oldest active message
	Timeout time.Duration // how long to wait for one, without ID
}

// Outcome is how a locked message is settled.
type Outcome int

// The outcomes.
const (
	Complete   Outcome = iota // it is done with
	Abandon                   // back at its place, delivery count + 1
	Release                   // back at its place
	Defer                     // aside, until received by its sequence number
	DeadLetter                // to the dead-letter queue
)

// A Settlement is an Outcome with what belongs to it.
type Settlement struct {
	Outcome     Outcome
	Properties  map[string]any // merged into the application properties, but with Complete and Release
	Reason      string         // of DeadLetter
	Description string         // of DeadLetter
}

// PeekOptions say which messages to look at.
type PeekOptions struct {
	From      int64 // the first sequence number
	Max       int
	SessionID *string // only this session
}
