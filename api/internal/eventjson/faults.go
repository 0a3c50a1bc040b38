package eventjson

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// MaxFaults is the maximum number of listed faults of one JSON text.
const MaxFaults = 100

// A Fault is an error at one position of a JSON text.
type Fault struct {
	Pointer string // RFC 6901
	Inside  string // rest of the pointer, inside a payload; it must not be logged, because its names are data
	Detail  string
	Index   int // index of the event among all events of the input
}

// Faults are the faults of one JSON text.
type Faults struct {
	List  []Fault // the first MaxFaults faults
	Total int
}

func (f *Faults) add(p eventPlace, field, detail string) {
	f.addInside(p, field, "", detail)
}

// addInside adds a fault inside the value of a field. inside is the pointer from the value to the
// fault.
func (f *Faults) addInside(p eventPlace, field, inside, detail string) {
	f.Total++
	if len(f.List) < MaxFaults {
		f.List = append(f.List, Fault{Pointer: p.pointer(field), Inside: inside, Detail: detail, Index: p.number})
	}
}

// An eventPlace is the place of an event in a JSON text. If alone is true, the event is the object
// at the pointer prefix. Otherwise it is the element with the given index in the array at prefix.
type eventPlace struct {
	prefix string
	index  int
	alone  bool
	number int // index of the event among all events of the input
}

// pointer returns the JSON pointer to a field of the event, or to the event itself if field is "".
func (p eventPlace) pointer(field string) string {
	pointer := p.prefix
	if !p.alone {
		pointer += "/" + strconv.Itoa(p.index)
	}
	if field != "" {
		pointer += "/" + EscapePointer(domain.Shorten(field))
	}
	return pointer
}

// EscapePointer escapes a name for a JSON pointer.
func EscapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// A SyntaxError means that a text is not JSON, or is not of the required JSON type.
type SyntaxError struct {
	Pointer string // pointer to the faulty event; "" if the fault is outside of events
	at      int64  // position of the fault in bytes
	want    string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s, at byte %d", e.want, e.at) }

// A TooManyError means that a text contains more events than Limits.Events.
type TooManyError struct{ Limit int }

func (e *TooManyError) Error() string { return fmt.Sprintf("more than %d events", e.Limit) }
