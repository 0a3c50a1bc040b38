package eventjson

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// MaxFaults is how many faults of one text are listed.
const MaxFaults = 100

// A Fault is an error at one position of a text.
type Fault struct {
	Pointer string // RFC 6901
	Inside  string // continues Pointer within a payload; its names are data, which no log has
	Detail  string
	Index   int // of the event, among all of the text
}

// Faults are those of one text.
type Faults struct {
	List  []Fault // the first MaxFaults
	Total int
}

func (f *Faults) add(p eventPlace, field, detail string) {
	f.addInside(p, field, "", detail)
}

// addInside adds a fault of the value that the pointer inside leads to within a field.
func (f *Faults) addInside(p eventPlace, field, inside, detail string) {
	f.Total++
	if len(f.List) < MaxFaults {
		f.List = append(f.List, Fault{Pointer: p.pointer(field), Inside: inside, Detail: detail, Index: p.number})
	}
}

// An eventPlace is where an event stands in a text: element index of the array that
// prefix points to, or the object itself that prefix points to, if alone.
type eventPlace struct {
	prefix string
	index  int
	alone  bool
	number int // of the event, among all of the text
}

// pointer returns the JSON pointer to a field of the event, or to all of it for "".
func (p eventPlace) pointer(field string) string {
	pointer := p.prefix
	if !p.alone {
		pointer += "/" + strconv.Itoa(p.index)
	}
	if field != "" {
		pointer += "/" + EscapePointer(domain.Clip(field))
	}
	return pointer
}

// EscapePointer returns a name as a JSON pointer has it.
func EscapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// A SyntaxError says why a text is not the JSON that it should be.
type SyntaxError struct {
	Pointer string // to the event, if the fault is in one
	at      int64  // bytes before the fault
	want    string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s, at byte %d", e.want, e.at) }

// A TooManyError reports more events than Limits.Events.
type TooManyError struct{ Most int }

func (e *TooManyError) Error() string { return fmt.Sprintf("more than %d events", e.Most) }
