package eventjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// The fields of an event, in the order in which error messages list them. All fields except payload
// are required.
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

// An eventDecoder decodes the events of one request. Equal names in these events share memory.
type eventDecoder struct {
	limits  Limits
	faults  *Faults
	place   eventPlace // place of the event that is being decoded
	compact bytes.Buffer
	shape   ShapeChecker

	recipients    nameCache[domain.ActorID]
	origins       nameCache[domain.Origin]
	contentTypes  nameCache[domain.ContentType]
	documentTypes nameCache[domain.DocumentType]
}

func newEventDecoder(limits Limits, f *Faults) *eventDecoder {
	return &eventDecoder{
		limits:        limits,
		faults:        f,
		shape:         NewShapeChecker(limits),
		recipients:    newNameCache(domain.ParseActorID),
		origins:       newNameCache(domain.ParseOrigin),
		contentTypes:  newNameCache(domain.ParseContentType),
		documentTypes: newNameCache(domain.ParseDocumentType),
	}
}

// decode decodes the event in text into e, and collects the faults of the event. at is the place of
// the event. decode fails with a *SyntaxError if text is not JSON.
func (d *eventDecoder) decode(at eventPlace, text []byte, defaults eventDefaults, e *domain.Event) error {
	d.place = at
	if err := checkUTF8(text, "event"); err != nil {
		return err
	}
	if len(text) == 0 { // the array continues, so json's "unexpected end of JSON input" would mislead
		return &SyntaxError{want: "want an event"}
	}
	if text[0] != '{' {
		if err := checkJSON(text, 0); err != nil {
			return err
		}
		d.addFault("", "want an object, got "+TypeOf(text))
		return nil
	}
	before := d.faults.Total
	var seen [fieldCount]bool
	for m, err := range Members(text) {
		if err != nil {
			return err
		}
		field := fieldOf(m.Name)
		if field < 0 {
			if err := checkJSON(m.Value, m.at); err != nil {
				return err
			}
			d.addFault(string(m.Name), "unknown field; known are "+strings.Join(fieldNames[:], ", "))
			continue
		}
		if seen[field] {
			d.addFault(fieldNames[field], fieldNames[field]+": appears more than once")
		}
		seen[field] = true
		if err := d.readField(field, m, e); err != nil {
			return err
		}
	}
	for field, name := range fieldNames {
		if !seen[field] && field != fieldPayload && !d.setDefault(field, defaults, e) {
			d.addFault(name, name+": missing")
		}
	}
	if d.faults.Total == before {
		d.checkPayload(e)
	}
	return nil
}

// eventDefaults contains the fields that an event inherits from its CloudEvent; "" means no
// default.
type eventDefaults struct {
	id, recipient string
	by            eventPlace
}

// setDefault sets a missing field to its default from the CloudEvent. It returns false if there is
// no default.
func (d *eventDecoder) setDefault(field int, defaults eventDefaults, e *domain.Event) bool {
	var name string
	var wrong error
	switch {
	case field == fieldID && defaults.id != "":
		name = "id"
		e.ID, wrong = domain.ParseEventID(defaults.id)
	case field == fieldRecipient && defaults.recipient != "":
		name = "subject"
		e.Recipient, wrong = domain.ParseActorID(defaults.recipient)
	default:
		return false
	}
	if wrong != nil {
		d.faults.add(defaults.by, name, wrong.Error())
	}
	return true
}

func fieldOf(name []byte) int {
	for field, known := range fieldNames {
		if string(name) == known {
			return field
		}
	}
	return -1
}

// readField decodes the value of one field into e.
func (d *eventDecoder) readField(field int, m Member, e *domain.Event) error {
	switch field {
	case fieldSupportsBundling:
		return d.readFlag(m, &e.SupportsBundling)
	case fieldWeight:
		return d.readWeight(m, &e.Weight)
	case fieldPayload:
		return d.readPayload(m, &e.Payload)
	}
	if m.Value[0] != '"' {
		return d.wrongType(field, m, "a string")
	}
	text, err := unquote(m.Value, m.at)
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
		d.addFault(fieldNames[field], wrong.Error())
	}
	return nil
}

func (d *eventDecoder) readFlag(m Member, flag *bool) error {
	switch string(m.Value) {
	case "true":
		*flag = true
	case "false":
		*flag = false
	default:
		return d.wrongType(fieldSupportsBundling, m, "true or false")
	}
	return nil
}

// readWeight accepts integers without a fraction or an exponent. 1.5, 1e3 and numbers of more than
// 64 bits are faults.
func (d *eventDecoder) readWeight(m Member, weight *domain.Weight) error {
	if c := m.Value[0]; c != '-' && (c < '0' || c > '9') {
		return d.wrongType(fieldWeight, m, "a whole number of KB")
	}
	text := string(m.Value)
	kb, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '0' || text[0] == '-' { // strconv accepts some numbers that are not JSON, such as 007
		if err := checkJSON(m.Value, m.at); err != nil {
			return err
		}
	}
	name := fieldNames[fieldWeight]
	switch {
	case strings.ContainsAny(text, ".eE"):
		d.addFault(name, "weight: want a whole number of KB without fraction or exponent, got "+domain.Shorten(text))
	case text[0] == '-':
		d.addFault(name, "weight: want at least 1 (KB), got "+domain.Shorten(text))
	case err != nil:
		d.addFault(name, "weight: want at most "+strconv.FormatInt(math.MaxInt64, 10)+" (KB), got "+domain.Shorten(text))
	default:
		if *weight, err = domain.NewWeight(kb); err != nil {
			d.addFault(name, err.Error())
		}
	}
	return nil
}

// readPayload accepts any JSON value. It removes insignificant white space before it checks the
// limit and stores the payload. null means no payload.
func (d *eventDecoder) readPayload(m Member, payload *[]byte) error {
	if string(m.Value) == "null" {
		return nil
	}
	d.compact.Reset()
	if err := json.Compact(&d.compact, m.Value); err != nil {
		return notJSONAt(err, m.at)
	}
	if f := d.shape.Check(d.compact.Bytes()); f != nil {
		name := fieldNames[fieldPayload]
		d.faults.addInside(d.place, name, f.Pointer, name+": "+f.Detail)
		return nil
	}
	*payload = bytes.Clone(d.compact.Bytes())
	return nil
}

func (d *eventDecoder) checkPayload(e *domain.Event) {
	const kilobyte = 1 << 10
	size, name := len(e.Payload), fieldNames[fieldPayload]
	switch {
	case size > d.limits.Payload:
		d.addFault(name, fmt.Sprintf("payload: want at most %d bytes, got %d", d.limits.Payload, size))
	case (int64(size)+kilobyte-1)/kilobyte > int64(e.Weight):
		d.addFault(name, fmt.Sprintf("payload: has %d bytes, more than the weight of its event allows (%d KB)", size, e.Weight))
	}
}

func (d *eventDecoder) addFault(field, detail string) { d.faults.add(d.place, field, detail) }

func (d *eventDecoder) wrongType(field int, m Member, want string) error {
	if err := checkJSON(m.Value, m.at); err != nil {
		return err
	}
	d.addFault(fieldNames[field], fieldNames[field]+": want "+want+", got "+TypeOf(m.Value))
	return nil
}

// A nameCache parses names and caches the results. It helps because the events of a request usually
// have few different recipients, origins and types.
type nameCache[T any] struct {
	parser func(string) (T, error)
	known  map[string]T
}

func newNameCache[T any](parser func(string) (T, error)) nameCache[T] {
	return nameCache[T]{parser, make(map[string]T)}
}

func (w nameCache[T]) parse(text []byte) (T, error) {
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
