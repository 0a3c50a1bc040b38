package eventjson

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// Limits bound what one text may hold.
type Limits struct {
	Events        int
	Payload       int // bytes in compact form
	PayloadDepth  int // levels of nesting in one payload; default 64
	PayloadNumber int // characters of a number in a payload; default 400
}

// Events are what a text holds.
type Events struct {
	Events []domain.Event // without a fault of their own
	Faults Faults
	Count  int // of all events, those with faults as well

	// Causes are the spans that CloudEvents name in their extension traceparent, by
	// [domain.AddCause].
	Causes []domain.TraceContext

	numbers []int        // of Events, among all events of the text
	runs    []eventPlace // of the first event of each array, or of one that is alone
}

// Fault returns what else is wrong with a field of Events[i], or with all of it
// for "".
func (e *Events) Fault(i int, field, detail string) Fault {
	number := e.numbers[i]
	after := sort.Search(len(e.runs), func(j int) bool { return e.runs[j].number > number })
	p := e.runs[after-1]
	p.index += number - p.number
	return Fault{Pointer: p.pointer(field), Detail: detail, Index: number}
}

// Read reads a JSON array of events. It keeps one element of the text in memory at a time, and
// continues after a faulty event to find the faults of the others. Text that is no JSON array
// fails with a *SyntaxError, too many events fail with a *TooManyError, and any failure of r is
// returned as it is; the Events say what was found until then.
func Read(r io.Reader, limits Limits) (*Events, error) {
	t := newTaker(limits)
	return t.events, t.takeArray(&elements{r: r}, "", given{})
}

// Parse reads a JSON object, one event, or a JSON array of events. It fails as Read
// does. The pointers of a single event begin at its fields.
func Parse(text []byte, limits Limits) (*Events, error) {
	t := newTaker(limits)
	if begin := skipSpace(text, 0); begin < len(text) && text[begin] == '{' {
		return t.events, t.takeSingle(bytes.TrimRight(text[begin:], space), int64(begin), "", given{})
	}
	return t.events, t.takeArray(inMemory(text, 0), "", given{})
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

// takeArray takes the events of an array that prefix points to.
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

// takeSingle takes the event that is all of the text at an offset, and that prefix points
// to.
func (t *taker) takeSingle(text []byte, offset int64, prefix string, from given) error {
	return t.takeEvent(text, offset, t.nextPlace(eventPlace{prefix: prefix, alone: true}), from)
}

// nextPlace makes p the place of the next event, with which an array begins or which is
// alone.
func (t *taker) nextPlace(p eventPlace) eventPlace {
	p.number = t.events.Count
	t.events.runs = append(t.events.runs, p)
	return p
}

// takeEvent takes the event that is the text at an offset in the whole.
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

// withPlace says where in the whole a fault of the text at an offset is.
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
