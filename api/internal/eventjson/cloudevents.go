package eventjson

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/url"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// ParseCloudEvent decodes a CloudEvent of version 1.0 in its JSON format
// (application/cloudevents+json) whose data is one event or an array of events. A single event
// without an id gets the id of the CloudEvent. An event without a recipient gets the subject of the
// CloudEvent as its recipient. The remaining attributes of the CloudEvent must be valid, but are
// not stored. The span in the extension traceparent is added to Causes. ParseCloudEvent fails like
// Read.
func ParseCloudEvent(text []byte, limits Limits) (*Events, error) {
	t := newEventReader(limits)
	return t.events, t.readCloudEvent(text, 0, eventPlace{alone: true})
}

// ParseCloudEvents decodes a batch of CloudEvents (application/cloudevents-batch+json). It decodes
// each CloudEvent as ParseCloudEvent does, and fails like Read.
func ParseCloudEvents(text []byte, limits Limits) (*Events, error) {
	t := newEventReader(limits)
	array := inMemory(text, 0)
	if err := array.openArray("CloudEvents"); err != nil {
		return t.events, err
	}
	for index := 0; ; index++ {
		text, err := array.nextElement()
		if err == io.EOF { //nolint:errorlint // nextElement returns it itself
			return t.events, nil
		}
		if err != nil {
			return t.events, err
		}
		if index == limits.Events { // a CloudEvent without events also takes time, so the number of CloudEvents is limited
			return t.events, &TooManyError{limits.Events}
		}
		if err := t.readCloudEvent(text, array.offset, eventPlace{index: index}); err != nil {
			return t.events, err
		}
	}
}

// readCloudEvent reads the events of the CloudEvent in text. offset is the position of text in the
// input, and at is the place of the CloudEvent.
func (t *eventReader) readCloudEvent(text []byte, offset int64, at eventPlace) error {
	at.number = t.events.Count
	c := cloudEvent{faults: &t.events.Faults, place: at, shape: &t.decoder.shape}
	data, err := c.readAttributes(text)
	if err != nil {
		return withPlace(err, offset, at)
	}
	t.events.Causes = domain.AddCause(t.events.Causes, c.traceParent, c.traceState)
	if data.Value == nil {
		return nil
	}
	defaults := eventDefaults{recipient: c.subject, by: at}
	prefix := at.pointer("data")
	offset += int64(data.at)
	switch data.Value[0] {
	case '{':
		defaults.id = c.id
		return t.readSingle(data.Value, offset, prefix, defaults)
	case '[':
		return t.readArray(inMemory(data.Value, offset), prefix, defaults)
	}
	if err := checkJSON(data.Value, 0); err != nil {
		return withPlace(err, offset, at)
	}
	c.addFault("data", "data: want an event or an array of events, got "+TypeOf(data.Value))
	return nil
}

// A cloudEvent contains the attributes of a CloudEvent that the hub uses.
type cloudEvent struct {
	faults *Faults
	place  eventPlace
	shape  *ShapeChecker

	id, subject             string
	traceParent, traceState string
}

// readAttributes checks all attributes and returns the member data. If there is no data, or the
// CloudEvent is not an object, the value of the member is nil.
func (c *cloudEvent) readAttributes(text []byte) (data Member, err error) {
	if err := checkUTF8(text, "CloudEvent"); err != nil {
		return data, err
	}
	text = bytes.TrimRight(text, space)
	begin := skipSpace(text, 0)
	if begin == len(text) || text[begin] != '{' {
		if err := checkJSON(text[begin:], begin); err != nil {
			return data, err
		}
		c.addFault("", "want a CloudEvent, an object, got "+TypeOf(text[begin:]))
		return data, nil
	}
	seen := make(map[string]bool, 16)
	for m, err := range Members(text[begin:]) {
		if err != nil {
			return data, withPlace(err, int64(begin), c.place)
		}
		m.at += begin
		name := string(m.Name)
		if seen[name] {
			c.addFault(name, name+": appears more than once")
		}
		seen[name] = true
		if name == "data" {
			data = m // the value of data is checked when its events are read
			continue
		}
		if err := c.readAttribute(name, m); err != nil {
			return data, err
		}
	}
	seen["data"] = seen["data"] || seen["data_base64"]
	for _, name := range [...]string{"specversion", "id", "source", "type", "data"} {
		if !seen[name] {
			c.addFault(name, name+": missing")
		}
	}
	return data, nil
}

// readAttribute checks one attribute, and stores it if the hub uses it. It fails with a
// *SyntaxError if the value is not JSON.
func (c *cloudEvent) readAttribute(name string, m Member) error {
	if err := checkJSON(m.Value, m.at); err != nil {
		return err
	}
	if f := c.shape.Check(m.Value); f != nil {
		c.faults.addInside(c.place, name, f.Pointer, name+": "+f.Detail)
		return nil
	}
	switch name {
	case "specversion", "id", "source", "type":
		return c.checkText(name, m)
	case "subject", "time", "dataschema", "datacontenttype":
		if string(m.Value) == "null" { // null means that the attribute is missing
			return nil
		}
		return c.checkText(name, m)
	case "data_base64":
		c.addFault(name, "data_base64: want the event as JSON in data instead")
	default:
		c.checkExtension(name, m)
		return c.readTrace(name, m)
	}
	return nil
}

// readTrace stores an extension that contains a trace context. It ignores a value that is not a
// string.
func (c *cloudEvent) readTrace(name string, m Member) error {
	if name != "traceparent" && name != "tracestate" || m.Value[0] != '"' {
		return nil
	}
	text, err := unquote(m.Value, m.at)
	if err != nil {
		return err
	}
	if name == "traceparent" {
		c.traceParent = string(text)
	} else {
		c.traceState = string(text)
	}
	return nil
}

// checkText checks an attribute whose value must be a string.
func (c *cloudEvent) checkText(name string, m Member) error {
	if m.Value[0] != '"' {
		c.addFault(name, name+": want a string, got "+TypeOf(m.Value))
		return nil
	}
	unquoted, err := unquote(m.Value, m.at)
	if err != nil {
		return err
	}
	text := string(unquoted)
	if strings.TrimSpace(text) == "" {
		c.addFault(name, name+": want a string that is not blank")
		return nil
	}
	switch name {
	case "specversion":
		if text != "1.0" {
			c.addFault(name, "specversion: want 1.0, got "+domain.Shorten(text))
		}
	case "id":
		c.id = text
	case "source":
		if _, err := url.Parse(text); err != nil {
			c.addFault(name, "source: want a URI reference, got "+domain.Shorten(text))
		}
	case "dataschema":
		if u, err := url.Parse(text); err != nil || !u.IsAbs() {
			c.addFault(name, "dataschema: want an absolute URI, got "+domain.Shorten(text))
		}
	case "subject":
		c.subject = text
	case "time":
		if _, err := time.Parse(time.RFC3339, strings.ToUpper(text)); err != nil {
			c.addFault(name, "time: want a time such as 2026-03-01T12:00:00Z, got "+domain.Shorten(text))
		}
	case "datacontenttype":
		if !isJSON(text) {
			c.addFault(name, "datacontenttype: want application/json, since data is an event in JSON, got "+domain.Shorten(text))
		}
	}
	return nil
}

// isJSON reports whether mediaType means JSON.
func isJSON(mediaType string) bool {
	media, _, err := mime.ParseMediaType(mediaType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return false
	}
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// checkExtension checks an extension attribute.
func (c *cloudEvent) checkExtension(name string, m Member) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		c.addFault(name, "unknown attribute; the name of an extension has only a-z and 0-9")
		return
	}
	if m.Value[0] == '{' || m.Value[0] == '[' {
		c.addFault(name, name+": want a string, a number, true or false, got "+TypeOf(m.Value))
	}
}

func (c *cloudEvent) addFault(name, detail string) { c.faults.add(c.place, name, detail) }
