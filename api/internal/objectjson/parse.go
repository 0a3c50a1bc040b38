package objectjson

import (
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/domain"
)

// Options are the options of Parse.
type Options struct {
	MaxEvents int    // maximum number of events in the text; 0 means no limit
	MessageID string // id of the message that contains the text; "" if none exists
}

// Events are the events of one text.
type Events struct {
	Events []Event // events that can be stored, in the order of the text
	Faults []Fault
	Count  int // number of all events, including ignored ones; a rename counts as one

	Ignored      int
	IgnoredNames []string // names of the first few ignored events, shortened for the log

	// Causes are the spans that the traceparent extensions of the CloudEvents name, collected with
	// [domain.AddCause].
	Causes []domain.TraceContext

	// Handshake is set if the text is the validation request of Event Grid.
	Handshake *Handshake
}

// TraceCauses returns Causes, or nil if e is nil.
func (e *Events) TraceCauses() []domain.TraceContext {
	if e == nil {
		return nil
	}
	return e.Causes
}

// An Event is a valid event about an object: its method Check returns no error.
type Event struct {
	Index int // index among all events of the text
	Name  domain.ObjectName
	domain.ObjectEvent
}

// A Fault is the reason why an event cannot be stored.
type Fault struct {
	Index   int    // index among all events of the text
	Pointer string // JSON pointer (RFC 6901); see the comment of the package
	Reason  string // one of the reasons below
	Detail  string // description for a person
}

// The reasons of faults, in addition to those of [eventjson.ShapeFault].
const (
	NotJSON           = "not-json"            // the text of the event is not JSON in UTF-8
	UnknownForm       = "unknown-form"        // the format is unknown
	TooManyShells     = "too-many-shells"     // too many messages enclose the event
	MissingField      = "missing-field"       // the field is missing or null
	WrongType         = "wrong-type"          // the field has another type than the format requires
	TooLong           = "too-long"            // the text is longer than any store produces
	InvalidTime       = "invalid-time"        // the text is not a time of RFC 3339
	InvalidSize       = "invalid-size"        // the value is not an integer from 0 to 2^63-1
	InvalidSequencer  = "invalid-sequencer"   // the sequencer is empty or, for S3, not hexadecimal
	SequencerTooLong  = "sequencer-too-long"  // the sequencer is longer than domain.MaxSequencer characters
	InvalidVersion    = "invalid-version"     // the text is not a version id
	InvalidName       = "invalid-name"        // the text is not the name of a bucket, or not a key
	KeyNotEncoded     = "key-not-url-encoded" // the key has a % that does not begin an encoded byte
	KeyNotUTF8        = "key-not-utf8"        // the decoded key is not UTF-8
	InvalidSubject    = "invalid-subject"     // the subject does not name a blob
	InvalidCloudEvent = "invalid-cloudevent"  // an attribute violates CloudEvents 1.0
	// NotConfirmed reports a request from SNS to confirm a subscription. An operator must confirm
	// the subscription, because the hub never calls a URL from a message.
	NotConfirmed = "subscription-not-confirmed"
)

// Reasons contains all reasons of faults.
var Reasons = []string{
	NotJSON, UnknownForm, TooManyShells, MissingField, WrongType, TooLong, InvalidTime, InvalidSize, InvalidSequencer, SequencerTooLong,
	InvalidVersion, InvalidName, KeyNotEncoded, KeyNotUTF8, InvalidSubject, InvalidCloudEvent, NotConfirmed,
	eventjson.TooDeep, eventjson.NumberTooLong, eventjson.DuplicateField, eventjson.LoneSurrogate,
}

// A Handshake is the validation request of Event Grid. The response must contain Code.
type Handshake struct{ Code string }

// A TooManyError means that a text contains more events than Options.MaxEvents.
type TooManyError struct{ Limit int }

func (e *TooManyError) Error() string { return fmt.Sprintf("more than %d events", e.Limit) }

// ErrNotJSON means that a text cannot be split into events.
var ErrNotJSON = errors.New("want JSON")

// Parse reads the events in text. Its error is ErrNotJSON or a *TooManyError.
func Parse(text []byte, options Options) (*Events, error) {
	p := newParser(options)
	err := p.parseValue(&jsonNode{text: text}, &carrier{messageID: options.MessageID, text: text}, 0)
	return p.events, err
}

// A messageParser reads the events of one text.
type messageParser struct {
	options Options
	events  *Events
	shape   eventjson.ShapeChecker
}

func newParser(options Options) *messageParser {
	return &messageParser{options: options, events: &Events{}, shape: eventjson.NewShapeChecker(eventjson.Limits{})}
}

// A carrier is a message that contains events. Its id identifies events that have no sequencer.
type carrier struct {
	messageID string
	text      []byte // nil if messageID alone identifies the message
	id        string // cached result of stableID
	count     int    // number of events in the message found so far
}

// stableID returns an id that stays the same if the message is delivered again. If the carrier has
// a text, the id depends on the text too, because a sender might use one messageID for all
// messages.
func (d *carrier) stableID() string {
	if d.id == "" {
		d.id = shortDigest([]byte(d.messageID), d.text)
	}
	return d.id
}

// newEvent returns the next event of a carrier, not yet parsed.
func (p *messageParser) newEvent(from *carrier) *parsedEvent {
	return &parsedEvent{index: p.events.Count, carrier: from, place: from.count}
}

// finishEvent counts an event and adds its result.
func (p *messageParser) finishEvent(e *parsedEvent, from *carrier) error {
	const maxNames = 5
	if p.events.Count == p.options.MaxEvents && p.options.MaxEvents > 0 {
		return &TooManyError{p.options.MaxEvents}
	}
	p.events.Count++
	from.count++
	switch {
	case e.fault != nil:
		p.events.Faults = append(p.events.Faults, *e.fault)
	case e.ignored:
		p.events.Ignored++
		if len(p.events.IgnoredNames) < maxNames {
			p.events.IgnoredNames = append(p.events.IgnoredNames, domain.Shorten(e.ignoredName))
		}
	default:
		p.events.Events = append(p.events.Events, e.found...)
	}
	return nil
}

// A parsedEvent is an event that is being parsed.
type parsedEvent struct {
	index   int
	carrier *carrier
	place   int // index of the event in the carrier

	// The result of parsing is exactly one of found, ignored and fault.
	found       []Event
	ignored     bool
	ignoredName string
	fault       *Fault // first fault of the event
}

func (e *parsedEvent) markIgnored(name string) { e.ignored, e.ignoredName = true, name }

// An objectChange is a change of one object that an event reports.
type objectChange struct {
	bucket, key     string
	bucketAt, keyAt *jsonNode
	domain.ObjectEvent
}

// addChange adds a change. own is the event id that the event's source has assigned, or "".
func (e *parsedEvent) addChange(c objectChange, own string) {
	if e.fault != nil {
		return
	}
	if _, err := domain.ParseObjectName(c.bucket, "k"); err != nil {
		c.bucketAt.reportFault(InvalidName, "%v", err)
		return
	}
	name, err := domain.ParseObjectName(c.bucket, c.key)
	if err != nil {
		c.keyAt.reportFault(InvalidName, "%v", err)
		return
	}
	if c.Sequencer.IsNull() {
		c.Carrier = domain.Carrier{Message: e.carrier.stableID(), Index: e.place}
		if own != "" {
			c.Carrier = domain.Carrier{Message: shortDigest([]byte(own))}
		}
	}
	e.found = append(e.found, Event{e.index, name, c.ObjectEvent})
}
