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
	// ErrInvalid reports a request that fails again unless the caller changes it.
	ErrInvalid = errors.New("invalid")
	// ErrNotAllowed reports a request that the settings of an entity forbid. Example: a message without session id,
	// sent to an entity that requires sessions.
	ErrNotAllowed = errors.New("not allowed")
	// ErrDisabled reports an entity whose status forbids the operation.
	ErrDisabled = errors.New("the entity is disabled")
	// ErrLockLost reports an invalid or expired lock token.
	ErrLockLost = errors.New("the lock is lost; the message will come again unless it was settled")
	// ErrSessionLocked reports a session that another receiver has locked.
	ErrSessionLocked = errors.New("the session is locked by another receiver; accept another one, or try again later")
	// ErrSessionLockLost reports a session whose lock has expired.
	ErrSessionLockLost = errors.New("the session lock is lost; accept the session again")
	// ErrTimeout reports that no session became available before the timeout.
	ErrTimeout = errors.New("no session became available in time; try again")
	// ErrQuotaExceeded reports an entity that has reached MaxBytes.
	ErrQuotaExceeded = errors.New("the entity is full; receive from it first")
	// ErrTooLarge reports a message or session state that exceeds its size limit.
	ErrTooLarge = errors.New("too large")
	// ErrBusy reports that too many writes wait for the disk. The caller should retry later.
	ErrBusy = errors.New("too many writes are pending; try again in a moment")
	// ErrClosed reports the use of a bus after Close.
	ErrClosed = errors.New("the bus is closed")
)

// A Message is a message of a sender, with the values that the bus adds.
type Message struct {
	// The sender sets these fields, and the bus uses them. Sections also contains them, encoded.
	ID               string
	SessionID        *string // nil means that there is no session id; "" is a valid id
	PartitionKey     string
	Subject          string
	To               string
	ReplyTo          string
	ReplyToSessionID string
	CorrelationID    string
	ContentType      string
	TTL              time.Duration // 0 means the default of the entity
	ScheduledFor     time.Time     // the message is not scheduled if ScheduledFor is zero or in the past

	// ApplicationProperties is the encoded section of the application properties, which the bus decodes with its Codec.
	// Sections are all remaining encoded sections, which the bus does not decode.
	ApplicationProperties []byte
	Sections              []byte

	// The bus assigns these fields.
	SequenceNumber         int64
	EnqueuedSequenceNumber int64 // sequence number in the entity to which the message was sent, or 0 if this queue is that entity
	EnqueuedAt             time.Time
	ExpiresAt              time.Time // zero: never
	DeliveryCount          uint32    // number of failed deliveries
	State                  State
	DeadLetterSource       string // path of the entity in which the message became a dead letter
	// Rewritten is true if the bus changed a field that the sender had set: a rule's action did, or the ID was missing.
	// The fields then override Sections.
	Rewritten bool
}

// State is the state of a message. The protocol defines its numbers.
type State int32

// The states of a message.
const (
	Active    State = 0
	Deferred  State = 1
	Scheduled State = 2
)

// A Codec decodes and changes encoded application properties. It returns values of the types string, bool, int64,
// uint64, float64, time.Time, []byte and nil. Filters treat all remaining types as unknown.
type Codec interface {
	// Decode decodes a section. An empty section contains no properties.
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

// Status is the status of an entity: it may forbid sending, receiving, or both.
type Status string

// The statuses of an entity. The zero value means StatusActive.
const (
	StatusActive          Status = "Active"
	StatusDisabled        Status = "Disabled"
	StatusSendDisabled    Status = "SendDisabled"
	StatusReceiveDisabled Status = "ReceiveDisabled"
)

// An Entity is the configuration of a queue, topic or topic subscription. A zero value selects the default in the
// comment of the field.
type Entity struct {
	// Path is "queue", "topic" or "topic/Subscriptions/name". It is case-insensitive.
	Path string
	Kind Kind

	RequiresSession        bool
	LockDuration           time.Duration // 1 minute
	MaxDeliveryCount       uint32        // 10
	DefaultTTL             time.Duration // none
	DeadLetterOnExpiry     bool
	DeadLetterOnFilterFail bool          // in subscriptions: a message becomes a dead letter if a filter fails
	DuplicateWindow        time.Duration // 0 means no duplicate detection
	MaxBytes               int64         // default 1 GiB; includes dead letters, and for a topic also its subscriptions
	MaxMessageBytes        int64         // 256 KiB
	ForwardTo              string
	ForwardDeadLettersTo   string
	Status                 Status
	UserMetadata           string

	CreatedAt time.Time // set by the bus
	UpdatedAt time.Time // set by the bus
}

// Counts are the current numbers of messages of an entity.
type Counts struct {
	Active             int64
	Deferred           int64
	Scheduled          int64
	DeadLetter         int64
	TransferDeadLetter int64
	Bytes              int64
	Subscriptions      int
}

// A Rule selects messages of a topic for a subscription, and may change these messages.
type Rule struct {
	Name   string
	Filter Filter
	Action string // SET and REMOVE statements; an empty Action changes nothing
}

// A Filter is an SQL condition, a Correlation or a constant; at most one is set. The zero Filter matches all messages.
type Filter struct {
	SQL         string         `json:",omitempty"`
	Parameters  map[string]any `json:",omitempty"` // parameters of SQL by name, which begins with @
	Correlation *Correlation   `json:",omitempty"`
	False       bool           `json:",omitempty"`
}

// A Correlation matches a message that equals it in all non-empty values.
type Correlation struct {
	CorrelationID, MessageID, To, ReplyTo, Subject, SessionID, ReplyToSessionID, ContentType string
	Properties                                                                               map[string]any
}

// Mode tells whether a message is locked or removed when it is received.
type Mode int

// The values of Mode.
const (
	PeekLock Mode = iota
	ReceiveAndDelete
)

// A LockToken identifies the lock of a message.
type LockToken [16]byte

// A Delivery is a message that the bus delivers to a receiver.
type Delivery struct {
	Message
	Token       LockToken // zero in mode ReceiveAndDelete
	LockedUntil time.Time // zero in mode ReceiveAndDelete
}

// ReceiverOptions configure a Receiver. The bus does not hold its lock when it calls Deliver and Lost, so they may call
// the bus. They must not block, because the bus makes one call at a time.
type ReceiverOptions struct {
	Mode    Mode
	Deliver func(Delivery)
	// Lost, if set, is called at most once, when the bus ends the receiver. The error is ErrSessionLockLost,
	// ErrNotFound (the entity was deleted), ErrDisabled, ErrClosed or disk.ErrBroken.
	Lost func(error)
}

// A SessionRequest requests a session.
type SessionRequest struct {
	ID      *string       // nil requests the unlocked session with the oldest active message
	Timeout time.Duration // maximum wait for a session; ignored if ID is set
}

// Outcome determines how a locked message is settled.
type Outcome int

// The outcomes.
const (
	Complete   Outcome = iota // Complete removes the message
	Abandon                   // Abandon returns the message to its position and increments its delivery count
	Release                   // Release returns the message to its position
	Defer                     // Defer delivers the message only to a receiver that names its sequence number
	DeadLetter                // DeadLetter moves the message to the dead-letter queue
)

// A Settlement is an Outcome with its parameters.
type Settlement struct {
	Outcome     Outcome
	Properties  map[string]any // changes of the application properties; ignored for Complete and Release
	Reason      string         // reason, if the message becomes a dead letter
	Description string         // description of the reason, if the message becomes a dead letter
}

// PeekOptions select the messages that Peek returns.
type PeekOptions struct {
	From      int64 // lowest sequence number to return
	Max       int
	SessionID *string // if not nil, Peek returns only messages of this session
}
