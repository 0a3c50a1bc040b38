package objectjson

import (
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/domain"
)

// Options are the settings of Parse.
type Options struct {
	MaxEvents int    // limit of events in the text; 0: no limit
	MessageID string // id of the message with the text; "": none
}

// Events are the events of a text.
type Events struct {
	Events []Event // events that can be stored, in the order of the text
	Faults []Fault
	Count  int // number of all events, including ignored ones; a rename counts as one

	Ignored      int
	IgnoredNames []string // the first few of their names, shortened for the log

	// Causes are the spans in the extension traceparent of CloudEvents, as
	// [domain.AddCause] collects them.
	Causes []domain.TraceContext

	// Handshake is set if the text is the validation request of Event Grid.
	Handshake *Handshake
}

// TraceCauses returns the spans in CloudEvents. A nil *Events has none.
func (e *Events) TraceCauses() []domain.TraceContext {
	if e == nil {
		return nil
	}
	return e.Causes
}

// An Event is an event of an object that passes its Check.
type Event struct {
	Index int // index among all events of the text
	Name  domain.ObjectName
	domain.ObjectEvent
}

// A Fault is the reason why an event cannot be stored.
type Fault struct {
	Index   int    // index among all events of the text
	Pointer string // RFC 6901; see the comment of the package
	Reason  string // one of the reasons below
	Detail  string // description for a person
}

// The reasons of faults. The others are those of [eventjson.ShapeFault].
const (
	NotJSON           = "not-json"            // the text of the event is not JSON in UTF-8
	UnknownForm       = "unknown-form"        // the format is not known
	TooManyShells     = "too-many-shells"     // messages are nested too deep
	MissingField      = "missing-field"       // the field is missing or null
	WrongType         = "wrong-type"          // the field has another type than the format requires
	TooLong           = "too-long"            // no store sends a text of this length
	InvalidTime       = "invalid-time"        // not a time of RFC 3339
	InvalidSize       = "invalid-size"        // not a whole number from 0 to 2^63-1
	InvalidSequencer  = "invalid-sequencer"   // empty, or, for S3, not hexadecimal
	SequencerTooLong  = "sequencer-too-long"  // longer than domain.MaxSequencer characters
	InvalidVersion    = "invalid-version"     // not a version id
	InvalidName       = "invalid-name"        // not the name of a bucket, or not a key
	KeyNotEncoded     = "key-not-url-encoded" // a % that does not begin an encoded byte
	KeyNotUTF8        = "key-not-utf8"        // the decoded key is not UTF-8
	InvalidSubject    = "invalid-subject"     // the subject names no blob
	InvalidCloudEvent = "invalid-cloudevent"  // an attribute violates CloudEvents 1.0
	// NotConfirmed is a request of SNS to confirm a subscription. The hub calls
	// no URL in a message, so an operator has to confirm it.
	NotConfirmed = "subscription-not-confirmed"
)

// Reasons has every reason of a fault.
var Reasons = []string{
	NotJSON, UnknownForm, TooManyShells, MissingField, WrongType, TooLong, InvalidTime, InvalidSize, InvalidSequencer, SequencerTooLong,
	InvalidVersion, InvalidName, KeyNotEncoded, KeyNotUTF8, InvalidSubject, InvalidCloudEvent, NotConfirmed,
	eventjson.TooDeep, eventjson.NumberTooLong, eventjson.DuplicateField, eventjson.LoneSurrogate,
}

// A Handshake is the validation request of Event Grid, which is answered with
// the code.
type Handshake struct{ Code string }

// A TooManyError reports more events than Options.MaxEvents.
type TooManyError struct{ Limit int }

func (e *TooManyError) Error() string { return fmt.Sprintf("more than %d events", e.Limit) }

// ErrNotJSON reports a text that cannot be split into events.
var ErrNotJSON = errors.New("want JSON")

// Parse reads the events of a text. It fails with ErrNotJSON and with a
// *TooManyError.
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

// A carrier is a message that contains events.
type carrier struct {
	messageID string
	text      []byte // nil: the id is enough to identify the message
	id        string // set at its first use
	count     int    // number of its events up to now
}

// stableID returns an id that is the same when the message is delivered again.
// The id of the message is not enough, because a sender could use the same one
// for all of its messages.
func (d *carrier) stableID() string {
	if d.id == "" {
		d.id = shortDigest([]byte(d.messageID), d.text)
	}
	return d.id
}

// newEvent returns the next event of a delivery.
func (p *messageParser) newEvent(from *carrier) *parsedEvent {
	return &parsedEvent{index: p.events.Count, delivery: from, place: from.count}
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
			p.events.IgnoredNames = append(p.events.IgnoredNames, domain.Clip(e.ignoredName))
		}
	default:
		p.events.Events = append(p.events.Events, e.found...)
	}
	return nil
}

// A parsedEvent is an event that is being parsed.
type parsedEvent struct {
	index    int
	delivery *carrier
	place    int // index in the delivery

	// The result is one of these three.
	found       []Event
	ignored     bool
	ignoredName string
	fault       *Fault // the first fault
}

func (e *parsedEvent) markIgnored(name string) { e.ignored, e.ignoredName = true, name }

// An objectChange is a change of an object in an event.
type objectChange struct {
	bucket, key     string
	bucketAt, keyAt *jsonNode
	domain.ObjectEvent
}

// addChange adds a change. own is the unique id of the event at its source, ""
// for none.
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
		c.Carrier = domain.Carrier{Message: e.delivery.stableID(), Index: e.place}
		if own != "" {
			c.Carrier = domain.Carrier{Message: shortDigest([]byte(own))}
		}
	}
	e.found = append(e.found, Event{e.index, name, c.ObjectEvent})
}
