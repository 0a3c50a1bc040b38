package api

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// The fields of an event, in the order in which messages name them. All but
// payload are required.
const (
	fieldID = iota
	fieldRecipient
	fieldOrigin
	fieldContentType
	fieldDocumentType
	fieldSupportsBundling
	fieldWeight
	fieldPayload
	fieldCount
)

var fieldNames = [fieldCount]string{"id", "recipient", "origin", "contentType", "documentType", "supportsBundling", "weight", "payload"}

// An eventDecoder reads the events of one request. Names that come again share
// their memory.
type eventDecoder struct {
	limits  Limits
	faults  *faults
	index   int // of the event at hand
	compact bytes.Buffer

	recipients    words[domain.ActorID]
	origins       words[domain.Origin]
	contentTypes  words[domain.ContentType]
	documentTypes words[domain.DocumentType]
}

func newEventDecoder(limits Limits, f *faults) *eventDecoder {
	return &eventDecoder{
		limits:        limits,
		faults:        f,
		recipients:    newWords(domain.ParseActorID),
		origins:       newWords(domain.ParseOrigin),
		contentTypes:  newWords(domain.ParseContentType),
		documentTypes: newWords(domain.ParseDocumentType),
	}
}

// decode reads one element of the array into e, and adds what is wrong with it
// to the faults. It fails with a *syntaxError if text is not JSON.
func (d *eventDecoder) decode(index int, text []byte, e *domain.Event) error {
	d.index = index
	if !utf8.Valid(text) {
		return &syntaxError{0, "want UTF-8 throughout the event"}
	}
	if len(text) == 0 || text[0] != '{' {
		if err := checkJSON(text, 0); err != nil {
			return err
		}
		d.fault("", "want an object, got "+typeOf(text))
		return nil
	}
	before := d.faults.total
	var seen [fieldCount]bool
	for m, err := range members(text) {
		if err != nil {
			return err
		}
		field := fieldOf(m.name)
		if field < 0 {
			if err := checkJSON(m.value, m.at); err != nil {
				return err
			}
			d.fault(string(m.name), "unknown field; known are "+joinWords(fieldNames[:]))
			continue
		}
		if seen[field] {
			d.fault(fieldNames[field], fieldNames[field]+": appears more than once")
		}
		seen[field] = true
		if err := d.field(field, m, e); err != nil {
			return err
		}
	}
	for field, name := range fieldNames {
		if !seen[field] && field != fieldPayload {
			d.fault(name, name+": missing")
		}
	}
	if d.faults.total == before {
		d.checkPayload(e)
	}
	return nil
}

func fieldOf(name []byte) int {
	for field, known := range fieldNames {
		if string(name) == known {
			return field
		}
	}
	return -1
}

// field reads the value of one field into e.
func (d *eventDecoder) field(field int, m member, e *domain.Event) error {
	switch field {
	case fieldSupportsBundling:
		return d.flag(m, &e.SupportsBundling)
	case fieldWeight:
		return d.weight(m, &e.Weight)
	case fieldPayload:
		return d.payload(m, &e.Payload)
	}
	if m.value[0] != '"' {
		return d.wrongType(field, m, "a string")
	}
	text, err := unquote(m.value, m.at)
	if err != nil {
		return err
	}
	var wrong error
	switch field {
	case fieldID:
		e.ID, wrong = domain.ParseEventID(string(text))
	case fieldRecipient:
		e.Recipient, wrong = d.recipients.parse(text)
	case fieldOrigin:
		e.Origin, wrong = d.origins.parse(text)
	case fieldContentType:
		e.ContentType, wrong = d.contentTypes.parse(text)
	case fieldDocumentType:
		e.DocumentType, wrong = d.documentTypes.parse(text)
	}
	if wrong != nil {
		d.fault(fieldNames[field], wrong.Error())
	}
	return nil
}

func (d *eventDecoder) flag(m member, flag *bool) error {
	switch string(m.value) {
	case "true":
		*flag = true
	case "false":
		*flag = false
	default:
		return d.wrongType(fieldSupportsBundling, m, "true or false")
	}
	return nil
}

// weight accepts whole numbers as they are usually written: whoever sends
// 1.5, 1e3 or a number that no machine word holds has made a mistake.
func (d *eventDecoder) weight(m member, weight *domain.Weight) error {
	if c := m.value[0]; c != '-' && (c < '0' || c > '9') {
		return d.wrongType(fieldWeight, m, "a whole number of KB")
	}
	text := string(m.value)
	kb, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '0' || text[0] == '-' { // all that strconv and JSON may see differently
		if err := checkJSON(m.value, m.at); err != nil {
			return err
		}
	}
	name := fieldNames[fieldWeight]
	switch {
	case strings.ContainsAny(text, ".eE"):
		d.fault(name, "weight: want a whole number of KB without fraction or exponent, got "+clip(text))
	case text[0] == '-':
		d.fault(name, "weight: want at least 1 (KB), got "+clip(text))
	case err != nil:
		d.fault(name, "weight: want at most "+strconv.FormatInt(math.MaxInt64, 10)+" (KB), got "+clip(text))
	default:
		if *weight, err = domain.NewWeight(kb); err != nil {
			d.fault(name, err.Error())
		}
	}
	return nil
}

// payload accepts any JSON value. It is kept in its compact form, in which its
// size counts. A null is a payload that was not sent.
func (d *eventDecoder) payload(m member, payload *[]byte) error {
	if string(m.value) == "null" {
		return nil
	}
	d.compact.Reset()
	if err := json.Compact(&d.compact, m.value); err != nil {
		return notJSONAt(err, m.at)
	}
	*payload = bytes.Clone(d.compact.Bytes())
	return nil
}

func (d *eventDecoder) checkPayload(e *domain.Event) {
	size, name := len(e.Payload), fieldNames[fieldPayload]
	switch {
	case size > d.limits.Payload:
		d.faults.add(d.index, name, "payload: want at most %d bytes, got %d", d.limits.Payload, size)
	case (int64(size)+kilobyte-1)/kilobyte > int64(e.Weight):
		d.faults.add(d.index, name, "payload: has %d bytes, more than the weight of its event allows (%d KB)", size, e.Weight)
	}
}

func (d *eventDecoder) fault(field, detail string) { d.faults.add(d.index, field, "%s", detail) }

func (d *eventDecoder) wrongType(field int, m member, want string) error {
	if err := checkJSON(m.value, m.at); err != nil {
		return err
	}
	d.fault(fieldNames[field], fieldNames[field]+": want "+want+", got "+typeOf(m.value))
	return nil
}

// words parses names and remembers them: the events of a request share a few
// recipients, origins and types.
type words[T any] struct {
	parser func(string) (T, error)
	known  map[string]T
}

func newWords[T any](parser func(string) (T, error)) words[T] {
	return words[T]{parser, make(map[string]T)}
}

func (w words[T]) parse(text []byte) (T, error) {
	if known, ok := w.known[string(text)]; ok {
		return known, nil
	}
	s := string(text)
	word, err := w.parser(s)
	if err == nil {
		w.known[s] = word
	}
	return word, err
}
