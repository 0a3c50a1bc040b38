package bus

import (
	"errors"
	"time"
)

// The errors of the bus. Package node maps each error to an AMQP condition.
var (
	// ErrNotFound reports an entity, rule or message that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists reports the creation of an entity or rule that exists already.
	ErrExists = errors.New("already exists")
	// ErrInvalid reports an invalid request, which fails again unless it is changed.
	ErrInvalid = errors.New("invalid")
	// ErrNotAllowed reports a request that the settings of the entity forbid, such as a message
	// without session id for an entity that requires sessions.
	ErrNotAllowed = errors.New("not allowed")
	// ErrDisabled reports an entity whose status forbids the operation.
	ErrDisabled = errors.New("the entity is disabled")
	// ErrLockLost reports an invalid or expired lock token.
	ErrLockLost = errors.New("the lock is lost; the message will come again unless it was settled")
	// ErrSessionLocked reports a session that another receiver holds.
	ErrSessionLocked = errors.New("the session is locked by another receiver; accept another one, or try again later")
	// ErrSessionLockLost reports a session whose lock has expired.
	ErrSessionLockLost = errors.New("the session lock is lost; accept the session again")
	// ErrTimeout reports that no session became available in time.
	ErrTimeout = errors.New("no session became available in time; try again")
	// ErrQuotaExceeded reports an entity that has reached MaxBytes.
	ErrQuotaExceeded = errors.New("the entity is full; receive from it first")
	// ErrTooLarge reports a message or session state beyond its limit.
	ErrTooLarge = errors.New("too large")
	// ErrBusy reports that too many writes wait for the disk. The caller should retry later.
	ErrBusy = errors.New("too many writes are pending; try again in a moment")
	// ErrClosed reports the use of a bus after Close.
	ErrClosed = errors.New("the bus is closed")
)

// A Message is a message from a sender, with the values that the bus assigns.
type Message struct {
	// The sender sets these fields, and the bus uses them. Sections contains them, too.
	ID               string
	SessionID        *string // nil: the message has no session id; the empty string is a valid id
	PartitionKey     string
	Subject          string
	To               string
	ReplyTo          string
	ReplyToSessionID string
	CorrelationID    string
	ContentType      string
	TTL              time.Duration // 0: the default of the entity
	ScheduledFor     time.Time     // zero, or in the past: the message is not scheduled

	// ApplicationProperties is the encoded section of this name. The bus decodes it with its Codec.
	// Sections are all other encoded sections. The bus does not decode them.
	ApplicationProperties []byte
	Sections              []byte

	// The bus assigns these fields.
	SequenceNumber         int64
	EnqueuedSequenceNumber int64 // number in the entity to which the message was sent; 0 if this queue received it from its sender
	EnqueuedAt             time.Time
	ExpiresAt              time.Time // zero: never
	DeliveryCount          uint32    // number of failed deliveries
	State                  State
	DeadLetterSource       string // path of the entity in which the message became a dead letter
	// Rewritten is true if the bus changed a field of the sender, because of a rule's action or a
	// missing ID. If it is true, the fields take precedence over Sections.
	Rewritten bool
}

// State is the state of a message. The numbers are defined by the protocol.
type State int32

// The states of a message.
const (
	Active    State = 0
	Deferred  State = 1
	Scheduled State = 2
)

// A Codec decodes and changes encoded application properties. Values are string, bool, int64,
// uint64, float64, time.Time, []byte and nil. Filters treat other types as unknown.
type Codec interface {
	// Decode decodes a section. An empty section has no properties.
	Decode(section []byte) (map[string]any, error)

	// Merge returns section with changes applied and without the properties named in remove.
	Merge(section []byte, changes map[string]any, remove []string) ([]byte, error)
}

// Kind is the kind of an entity.
type Kind string

// The kinds of entities.
const (
	Queue        Kind = "queue"
	Topic        Kind = "topic"
	Subscription Kind = "subscription"
)

// Status is the status of an entity, which limits its use.
type Status string

// The statuses of an entity. The zero value means StatusActive.
const (
	StatusActive          Status = "Active"
	StatusDisabled        Status = "Disabled"
	StatusSendDisabled    Status = "SendDisabled"
	StatusReceiveDisabled Status = "ReceiveDisabled"
)

// An Entity is the configuration of a queue, a topic or a topic subscription. Zero values mean
// the defaults in the comments.
type Entity struct {
	// Path is "queue", "topic" or "topic/Subscriptions/name". It is case-insensitive.
	Path string
	Kind Kind

	RequiresSession        bool
	LockDuration           time.Duration // 1 minute
	MaxDeliveryCount       uint32        // 10
	DefaultTTL             time.Duration // none
	DeadLetterOnExpiry     bool
	DeadLetterOnFilterFail bool          // in subscriptions, a message becomes a dead letter if the evaluation of a filter fails
	DuplicateWindow        time.Duration // 0: no duplicate detection
	MaxBytes               int64         // 1 GiB, including dead letters; the limit of a topic includes its subscriptions
	MaxMessageBytes        int64         // 256 KiB
	ForwardTo              string
	ForwardDeadLettersTo   string
	Status                 Status
	UserMetadata           string

	CreatedAt time.Time // set by the bus
	UpdatedAt time.Time // set by the bus
}

// Counts are the current numbers of messages in an entity.
type Counts struct {
	Active             int64
	Deferred           int64
	Scheduled          int64
	DeadLetter         int64
	TransferDeadLetter int64
	Bytes              int64
	Subscriptions      int
}

// A Rule selects messages of a topic for a subscription, and may change them.
type Rule struct {
	Name   string
	Filter Filter
	Action string // SET and REMOVE statements; empty: no changes
}

// A Filter is an SQL condition or one of the other kinds, of which at most one is set. The zero
// Filter matches all messages.
type Filter struct {
	SQL         string         `json:",omitempty"`
	Parameters  map[string]any `json:",omitempty"` // parameters of SQL, by name; a name includes its @
	Correlation *Correlation   `json:",omitempty"`
	False       bool           `json:",omitempty"`
}

// A Correlation matches messages that have all of its non-empty values.
type Correlation struct {
	CorrelationID, MessageID, To, ReplyTo, Subject, SessionID, ReplyToSessionID, ContentType string
	Properties                                                                               map[string]any
}

// Mode is the mode in which messages are received.
type Mode int

// The modes of receiving.
const (
	PeekLock Mode = iota
	ReceiveAndDelete
)

// A LockToken identifies the lock of a message.
type LockToken [16]byte

// A Delivery is a message for a receiver.
type Delivery struct {
	Message
	Token       LockToken // zero in mode ReceiveAndDelete
	LockedUntil time.Time // zero in mode ReceiveAndDelete
}

// ReceiverOptions configure a Receiver. The bus calls Deliver and Lost one at a time, in order, and
// without its lock. So these functions may call the bus, but they must not block.
type ReceiverOptions struct {
	Mode    Mode
	Deliver func(Delivery)
	// Lost, if set, is called at most once, when the bus ends the receiver. The error is
	// ErrSessionLockLost, ErrNotFound (the entity was deleted), ErrDisabled, ErrClosed, or
	// disk.ErrBroken.
	Lost func(error)
}

// A SessionRequest requests a session.
type SessionRequest struct {
	ID      *string       // nil: the unlocked session with the oldest active message
	Timeout time.Duration // time to wait for a session; ignored if ID is set
}

// Outcome is the outcome with which a locked message is settled.
type Outcome int

// The outcomes.
const (
	Complete   Outcome = iota // remove the message
	Abandon                   // return the message to its position, and increase its delivery count
	Release                   // return the message to its position
	Defer                     // deliver the message only by its sequence number
	DeadLetter                // move the message to the dead-letter queue
)

// A Settlement is an Outcome with its parameters.
type Settlement struct {
	Outcome     Outcome
	Properties  map[string]any // changes of the application properties; ignored with Complete and Release
	Reason      string         // reason of a dead letter
	Description string         // description of the reason of a dead letter
}

// PeekOptions select the messages of Peek.
type PeekOptions struct {
	From      int64 // the first sequence number
	Max       int
	SessionID *string // if not nil, only messages of this session
}
