package eventjson

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// Limits are the limits of one JSON text.
type Limits struct {
	Events        int
	Payload       int // maximum bytes of a payload without insignificant white space
	PayloadDepth  int // maximum levels of nesting in one payload; default 64
	PayloadNumber int // maximum characters of a number in a payload; default 400
}

// Events are the events of one JSON text.
type Events struct {
	Events []domain.Event // events without faults
	Faults Faults
	Count  int // number of all events, including faulty ones

	// Causes are the spans that the traceparent extensions of the CloudEvents name, collected with
	// [domain.AddCause].
	Causes []domain.TraceContext

	// FaultyOrigins are the origins of the events that have faults in other fields. The caller
	// checks whether the hub knows these origins, so that one response reports unknown origins
	// together with the other faults.
	FaultyOrigins []FaultyOrigin

	numbers []int        // index of each of Events among all events of the input
	runs    []eventPlace // places of the first event of each array, and of each single event
}

// A FaultyOrigin is the origin of an event that has a fault elsewhere.
type FaultyOrigin struct {
	domain.Origin
	place eventPlace
}

// Fault returns a fault of the origin.
func (o *FaultyOrigin) Fault(detail string) Fault {
	return Fault{Pointer: o.place.pointer(fieldNames[fieldOrigin]), Detail: detail, Index: o.place.number}
}

// Fault returns a fault that the hub has found in a field of Events[i]. If field is "", the fault
// is in the whole event.
func (e *Events) Fault(i int, field, detail string) Fault {
	number := e.numbers[i]
	after := sort.Search(len(e.runs), func(j int) bool { return e.runs[j].number > number })
	p := e.runs[after-1]
	p.index += number - p.number
	return Fault{Pointer: p.pointer(field), Detail: detail, Index: number}
}

// Read decodes a JSON array of events. It holds only one element of the array in memory. After a
// faulty event, it continues and finds the faults of later events. It fails with a *SyntaxError if
// the text is not a JSON array, and with a *TooManyError if the array has too many events. It
// returns an error from r unchanged. After a failure, the returned Events contain the events and
// faults before the error.
func Read(r io.Reader, limits Limits) (*Events, error) {
	t := newEventReader(limits)
	return t.events, t.readArray(&elements{r: r}, "", eventDefaults{})
}

// Parse decodes a JSON object with one event, or a JSON array of events. It fails like Read. If the
// text is a single event, the pointers to faults start with the name of a field.
func Parse(text []byte, limits Limits) (*Events, error) {
	const want = "want an event or an array of events"
	t := newEventReader(limits)
	begin := skipSpace(text, 0)
	switch {
	case begin == len(text):
		return t.events, &SyntaxError{at: int64(begin), want: "the body is empty; " + want}
	case text[begin] == '{':
		return t.events, t.readSingle(bytes.TrimRight(text[begin:], space), int64(begin), "", eventDefaults{})
	case text[begin] != '[':
		return t.events, &SyntaxError{at: int64(begin), want: want}
	}
	return t.events, t.readArray(inMemory(text, 0), "", eventDefaults{})
}

// An eventReader reads the events of a JSON text one after another.
type eventReader struct {
	limits  Limits
	decoder *eventDecoder
	events  *Events
}

func newEventReader(limits Limits) *eventReader {
	events := &Events{}
	return &eventReader{limits, newEventDecoder(limits, &events.Faults), events}
}

// readArray reads the events of the array at the pointer prefix.
func (t *eventReader) readArray(array *elements, prefix string, defaults eventDefaults) error {
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
		if err := t.readEvent(text, array.offset, p, defaults); err != nil {
			return err
		}
	}
}

// readSingle reads the single event in text. offset is the position of text in the input, and
// prefix is the pointer to the event.
func (t *eventReader) readSingle(text []byte, offset int64, prefix string, defaults eventDefaults) error {
	return t.readEvent(text, offset, t.nextPlace(eventPlace{prefix: prefix, alone: true}), defaults)
}

// nextPlace returns p as the place of the next event: the first event of an array, or a single
// event.
func (t *eventReader) nextPlace(p eventPlace) eventPlace {
	p.number = t.events.Count
	t.events.runs = append(t.events.runs, p)
	return p
}

// readEvent reads the event in text. offset is the position of text in the input.
func (t *eventReader) readEvent(text []byte, offset int64, p eventPlace, defaults eventDefaults) error {
	if t.events.Count == t.limits.Events {
		return &TooManyError{t.limits.Events}
	}
	t.events.Count++
	before := t.events.Faults.Total
	var event domain.Event
	if err := t.decoder.decode(p, text, defaults, &event); err != nil {
		return withPlace(err, offset, p)
	}
	if t.events.Faults.Total == before {
		t.events.Events = append(t.events.Events, event)
		t.events.numbers = append(t.events.numbers, p.number)
	} else if event.Origin != (domain.Origin{}) {
		t.events.FaultyOrigins = append(t.events.FaultyOrigins, FaultyOrigin{event.Origin, p})
	}
	return nil
}

// withPlace adds offset and the pointer of p to a *SyntaxError. It returns any other error
// unchanged.
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
