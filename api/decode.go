package api

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// decoded is what a body of POST /v1/data-available holds.
type decoded struct {
	events []domain.Event // without a fault of their own
	at     []int          // the place of each in the body
	faults faults
}

// maxFaults is how many faults a problem lists.
const maxFaults = 100

// faults counts all faults and keeps the first of them.
type faults struct {
	list   []fault
	total  int
	events int // that have a fault
}

func (f *faults) add(index int, field, format string, args ...any) {
	f.total++
	if len(f.list) < maxFaults {
		f.list = append(f.list, eventFault(index, field, fmt.Sprintf(format, args...)))
	}
}

// eventFault is a fault of event index, or of one of its fields.
func eventFault(index int, field, detail string) fault {
	pointer := "/" + strconv.Itoa(index)
	if field != "" {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(clip(field))
	}
	return fault{Pointer: pointer, Detail: detail, index: index}
}

// decodeEvents reads a JSON array of events. It keeps one element of the text
// in memory at a time, and goes on after a faulty event to find the faults of
// the others. Text that is no JSON array fails, as do too many events and any
// failure of r: nothing can be said about the rest.
func decodeEvents(r io.Reader, limits Limits) (*decoded, error) {
	array := elements{r: r}
	result := &decoded{}
	decoder := newEventDecoder(limits, &result.faults)
	if err := array.open(); err != nil {
		return nil, asRefused(err, "", result)
	}
	for index := 0; ; index++ {
		text, err := array.next()
		switch {
		case err == io.EOF: //nolint:errorlint // next returns it itself
			return result, nil
		case err != nil:
			return nil, asRefused(err, "", result)
		case index == limits.Events:
			return nil, refuse(tooManyEvents, "Nothing was stored: there are more than %d events. Send them in several requests.", limits.Events)
		}
		var event domain.Event
		before := result.faults.total
		if err := decoder.decode(index, text, &event); err != nil {
			if syntax, ok := errors.AsType[*syntaxError](err); ok {
				syntax.at += array.offset
			}
			return nil, asRefused(err, "/"+strconv.Itoa(index), result)
		}
		if result.faults.total > before {
			result.faults.events++
			continue
		}
		result.events = append(result.events, event)
		result.at = append(result.at, index)
	}
}

// asRefused says what it means that the body could not be read to its end as an
// array. The faults that were found before count as well.
func asRefused(err error, pointer string, before *decoded) error {
	if syntax, ok := errors.AsType[*syntaxError](err); ok {
		found := before.faults.list[:min(before.faults.total, maxFaults-1)]
		return &problemError{
			problem: notJSON,
			detail:  "Nothing was stored: the body must be one JSON array of events.",
			faults:  append(found, fault{Pointer: pointer, Detail: syntax.Error()}),
		}
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problemError{problem: bodySlow, close: true, detail: "Nothing was stored: the body was not complete at the deadline of the request. Send fewer events at a time.", cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &problemError{problem: bodyCut, detail: "Nothing was stored: the connection ended before the body did. Send the request again.", cause: err}
	}
	return err
}

// A syntaxError says why a text is not the JSON that it should be.
type syntaxError struct {
	at   int64 // bytes before the fault
	want string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s, at byte %d", e.want, e.at) }
