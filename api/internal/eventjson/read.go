package eventjson

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// Limits bound what one text may hold.
type Limits struct {
	Events  int
	Payload int // bytes in compact form
}

// Events are what a text holds.
type Events struct {
	Events []domain.Event // without a fault of their own
	Faults Faults
	Count  int // of all events, those with faults as well

	places []place // of Events
}

// Fault returns what else is wrong with a field of Events[i], or with all of it
// for "".
func (e *Events) Fault(i int, field, detail string) Fault {
	p := e.places[i]
	return Fault{Pointer: p.pointer(field), Detail: detail, Index: p.number}
}

// Read reads a JSON array of events. It keeps one element of the text in memory at
// a time, and goes on after a faulty event to find the faults of the others. Text
// that is no JSON array fails with a *SyntaxError, too many events fail with a
// *TooManyError, and any failure of r is returned as it is; the Events say what was
// found until then.
func Read(r io.Reader, limits Limits) (*Events, error) {
	t := newTaker(limits)
	return t.events, t.array(&elements{r: r}, "", given{})
}

// Parse reads a JSON object, one event, or a JSON array of events. It fails as Read
// does. The pointers of a single event begin at its fields.
func Parse(text []byte, limits Limits) (*Events, error) {
	t := newTaker(limits)
	if begin := skipSpace(text, 0); begin < len(text) && text[begin] == '{' {
		return t.events, t.one(text, begin, "", given{})
	}
	return t.events, t.array(inMemory(text, 0), "", given{})
}

// A taker takes one event of a text after the other.
type taker struct {
	limits  Limits
	decoder *eventDecoder
	events  *Events
}

func newTaker(limits Limits) *taker {
	events := &Events{}
	return &taker{limits, newEventDecoder(limits, &events.Faults), events}
}

// array takes the events of an array that prefix points to.
func (t *taker) array(array *elements, prefix string, from given) error {
	if err := array.open("events"); err != nil {
		return err
	}
	for index := 0; ; index++ {
		text, err := array.next()
		if err == io.EOF { //nolint:errorlint // next returns it itself
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.take(text, array.offset, place{prefix: prefix, index: index}, from); err != nil {
			return err
		}
	}
}

// one takes the event that is all of text, but for white space, and that prefix
// points to. It begins at a byte of text.
func (t *taker) one(text []byte, begin int, prefix string, from given) error {
	event := bytes.TrimRight(text[begin:], space)
	return t.take(event, int64(begin), place{prefix: prefix, alone: true}, from)
}

// take takes the event that is the text at an offset in the whole.
func (t *taker) take(text []byte, offset int64, p place, from given) error {
	if t.events.Count == t.limits.Events {
		return &TooManyError{t.limits.Events}
	}
	p.number = t.events.Count
	t.events.Count++
	before := t.events.Faults.Total
	var event domain.Event
	if err := t.decoder.decode(p, text, from, &event); err != nil {
		return placed(err, offset, p)
	}
	if t.events.Faults.Total == before {
		t.events.Events = append(t.events.Events, event)
		t.events.places = append(t.events.places, p)
	}
	return nil
}

// placed says where in the whole a fault of the text at an offset is.
func placed(err error, offset int64, p place) error {
	if syntax, ok := errors.AsType[*SyntaxError](err); ok {
		syntax.at += offset
		syntax.Pointer = p.pointer("")
	}
	return err
}

// checkUTF8 makes sure that text is text.
func checkUTF8(text []byte, what string) error {
	if !utf8.Valid(text) {
		return &SyntaxError{want: "want UTF-8 throughout the " + what}
	}
	return nil
}
