package eventjson

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// Limits are the limits of one text.
type Limits struct {
	Events        int
	Payload       int // bytes in compact form
	PayloadDepth  int // levels of nesting in one payload; default 64
	PayloadNumber int // characters of a number in a payload; default 400
}

// Events are the events of a text.
type Events struct {
	Events []domain.Event // events without a fault
	Faults Faults
	Count  int // number of all events, including faulty ones

	// Causes are the spans in the extension traceparent of CloudEvents, as
	// [domain.AddCause] collects them.
	Causes []domain.TraceContext

	numbers []int        // indexes of Events among all events of the text
	runs    []eventPlace // places of the first event of each array, and of single events
}

// Fault returns a fault that the hub has found in a field of Events[i], or in
// the whole event for "".
func (e *Events) Fault(i int, field, detail string) Fault {
	number := e.numbers[i]
	after := sort.Search(len(e.runs), func(j int) bool { return e.runs[j].number > number })
	p := e.runs[after-1]
	p.index += number - p.number
	return Fault{Pointer: p.pointer(field), Detail: detail, Index: number}
}

// Read decodes a JSON array of events. It keeps one element of the text in
// memory at a time, and continues after a faulty event to find the faults of
// the others. A text that is not a JSON array fails with a *SyntaxError, too
// many events fail with a *TooManyError, and an error of r is returned
// unchanged; the Events have what was found until then.
func Read(r io.Reader, limits Limits) (*Events, error) {
	t := newTaker(limits)
	return t.events, t.takeArray(&elements{r: r}, "", given{})
}

// Parse decodes a JSON object with one event, or a JSON array of events. It
// fails as Read does. The pointers of a single event begin at its fields.
func Parse(text []byte, limits Limits) (*Events, error) {
	t := newTaker(limits)
	if begin := skipSpace(text, 0); begin < len(text) && text[begin] == '{' {
		return t.events, t.takeSingle(bytes.TrimRight(text[begin:], space), int64(begin), "", given{})
	}
	return t.events, t.takeArray(inMemory(text, 0), "", given{})
}

// A taker takes the events of a text one after another.
type taker struct {
	limits  Limits
	decoder *eventDecoder
	events  *Events
}

func newTaker(limits Limits) *taker {
	events := &Events{}
	return &taker{limits, newEventDecoder(limits, &events.Faults), events}
}

// takeArray takes the events of the array at the pointer prefix.
func (t *taker) takeArray(array *elements, prefix string, from given) error {
	if err := array.openArray("events"); err != nil {
		return err
	}
	p := t.nextPlace(eventPlace{prefix: prefix})
	for ; ; p.index, p.number = p.index+1, p.number+1 {
		text, err := array.nextElement()
		if err == io.EOF { //nolint:errorlint // nextElement returns it itself
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.takeEvent(text, array.offset, p, from); err != nil {
			return err
		}
	}
}

// takeSingle takes the single event in text. offset is the position of text,
// and prefix its pointer.
func (t *taker) takeSingle(text []byte, offset int64, prefix string, from given) error {
	return t.takeEvent(text, offset, t.nextPlace(eventPlace{prefix: prefix, alone: true}), from)
}

// nextPlace sets p to the place of the next event, which is the first of an
// array or a single one.
func (t *taker) nextPlace(p eventPlace) eventPlace {
	p.number = t.events.Count
	t.events.runs = append(t.events.runs, p)
	return p
}

// takeEvent takes the event in text. offset is the position of text in the
// whole.
func (t *taker) takeEvent(text []byte, offset int64, p eventPlace, from given) error {
	if t.events.Count == t.limits.Events {
		return &TooManyError{t.limits.Events}
	}
	t.events.Count++
	before := t.events.Faults.Total
	var event domain.Event
	if err := t.decoder.decode(p, text, from, &event); err != nil {
		return withPlace(err, offset, p)
	}
	if t.events.Faults.Total == before {
		t.events.Events = append(t.events.Events, event)
		t.events.numbers = append(t.events.numbers, p.number)
	}
	return nil
}

// withPlace adds to an error in a text the position of that text in the whole.
func withPlace(err error, offset int64, p eventPlace) error {
	if syntax, ok := errors.AsType[*SyntaxError](err); ok {
		syntax.at += offset
		syntax.Pointer = p.pointer("")
	}
	return err
}

// checkUTF8 fails if text is not valid UTF-8.
func checkUTF8(text []byte, what string) error {
	if !utf8.Valid(text) {
		return &SyntaxError{want: "want UTF-8 throughout the " + what}
	}
	return nil
}
