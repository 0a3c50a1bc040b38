package objectjson

import (
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/domain"
)

// Options are the settings of Parse.
type Options struct {
	MaxEvents int    // in the text; 0: no limit
	MessageID string // of the message that had the text; "": it had none
}

// Events are what a text holds.
type Events struct {
	Events []Event // that can be stored, in the order of the text
	Faults []Fault
	Count  int // of all events: those above, and the ignored ones. A rename is one.

	Ignored      int
	IgnoredNames []string // the first few of their names, cut to a length for the log

	// Causes are the spans that CloudEvents name in their extension traceparent, by
	// [domain.AddCause].
	Causes []domain.TraceContext

	// Handshake is not nil if Event Grid asks whether its events are welcome.
	Handshake *Handshake
}

// TraceCauses returns the spans that CloudEvents name. A nil *Events has none.
func (e *Events) TraceCauses() []domain.TraceContext {
	if e == nil {
		return nil
	}
	return e.Causes
}

// An Event is an event of an object, which passes its Check.
type Event struct {
	Index int // among all events of the text
	Name  domain.ObjectName
	domain.ObjectEvent
}

// A Fault is why an event cannot be stored.
type Fault struct {
	Index   int    // among all events of the text
	Pointer string // RFC 6901; see the comment of the package
	Reason  string // one of the reasons below
	Detail  string // for a person
}

// The reasons of faults. The others are those of [eventjson.ShapeFault].
const (
	NotJSON           = "not-json"            // the text of the event is not JSON in UTF-8
	UnknownForm       = "unknown-form"        // the form is not known
	TooManyShells     = "too-many-shells"     // messages are nested too deep
	MissingField      = "missing-field"       // or it is null
	WrongType         = "wrong-type"          // the field has another type than the form says
	TooLong           = "too-long"            // a text that no store sends has this length
	InvalidTime       = "invalid-time"        // not RFC 3339
	InvalidSize       = "invalid-size"        // not a whole number from 0 to 2^63-1
	InvalidSequencer  = "invalid-sequencer"   // empty, or of S3 and not hexadecimal
	SequencerTooLong  = "sequencer-too-long"  // above domain.MaxSequencer characters
	InvalidVersion    = "invalid-version"     // not a version id
	InvalidName       = "invalid-name"        // not a bucket, or not a key
	KeyNotEncoded     = "key-not-url-encoded" // a % that begins no encoded byte
	KeyNotUTF8        = "key-not-utf8"        // once it is decoded
	InvalidSubject    = "invalid-subject"     // it names no blob
	InvalidCloudEvent = "invalid-cloudevent"  // an attribute is not what CloudEvents 1.0 says
	// NotConfirmed is a request of SNS to confirm a subscription. The hub calls no URL that a message
	// names, so its operator confirms it.
	NotConfirmed = "subscription-not-confirmed"
)

// Reasons has every reason of a fault.
var Reasons = []string{
	NotJSON, UnknownForm, TooManyShells, MissingField, WrongType, TooLong, InvalidTime, InvalidSize, InvalidSequencer, SequencerTooLong,
	InvalidVersion, InvalidName, KeyNotEncoded, KeyNotUTF8, InvalidSubject, InvalidCloudEvent, NotConfirmed,
	eventjson.TooDeep, eventjson.NumberTooLong, eventjson.DuplicateField, eventjson.LoneSurrogate,
}

// A Handshake is the question of Event Grid whether its events are welcome. The code is the answer.
type Handshake struct{ Code string }

// A TooManyError reports more events than Options.MaxEvents.
type TooManyError struct{ Limit int }

func (e *TooManyError) Error() string { return fmt.Sprintf("more than %d events", e.Limit) }

// ErrNotJSON reports a text that cannot be split into events.
var ErrNotJSON = errors.New("want JSON")

// Parse reads the events of a text. It fails with ErrNotJSON and with a *TooManyError.
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

// A carrier is a message that carried events.
type carrier struct {
	messageID string
	text      []byte // nil: the id is enough
	id        string // once it was needed
	count     int    // of its events until now
}

// stableID returns a text that is the same when the message is delivered again. The id alone could be one
// that a sender gives to all of its messages.
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

// finishEvent counts an event and takes over what became of it.
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

// A parsedEvent is one that is being read.
type parsedEvent struct {
	index    int
	delivery *carrier
	place    int // in the delivery

	// One of these three is what became of it.
	found       []Event
	ignored     bool
	ignoredName string
	fault       *Fault // the first one
}

func (e *parsedEvent) markIgnored(name string) { e.ignored, e.ignoredName = true, name }

// An objectChange is what an event says about an object.
type objectChange struct {
	bucket, key     string
	bucketAt, keyAt *jsonNode
	domain.ObjectEvent
}

// addChange adds a change. own is the id of the event among all of its source, "" for none.
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
