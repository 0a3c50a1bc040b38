package cloudevent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/domain"
)

// Structured decodes an event in the JSON format. text must be valid JSON.
func Structured(text []byte) (domain.Message, []Fault) {
	b := newBuilder()
	text = bytes.TrimSpace(text)
	if text[0] != '{' {
		b.reportFault("", "want a CloudEvent, an object, got "+eventjson.TypeOf(text))
		return domain.Message{}, b.faults
	}
	var data, encoded []byte
	seen := make(map[string]bool)
	for m, err := range eventjson.Members(text) {
		name := string(m.Name)
		switch {
		case err != nil:
			b.reportFault("", err.Error())
			return domain.Message{}, b.faults
		case seen[name]:
			b.reportFault(name, "it occurs twice")
		case string(m.Value) == "null": // null means that the attribute is missing
		case name == "data":
			data = m.Value
		case name == "data_base64":
			encoded = m.Value
		default:
			b.setMember(name, m.Value)
		}
		seen[name] = true
	}
	b.setData(data, encoded)
	return b.finish()
}

// Batch decodes events in the JSON batch format. text must be valid JSON.
func Batch(text []byte) ([]domain.Message, []Fault) {
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil || bytes.TrimSpace(text)[0] != '[' {
		return nil, []Fault{{Detail: "want an array of CloudEvents, got " + eventjson.TypeOf(bytes.TrimSpace(text))}}
	}
	messages := make([]domain.Message, len(all))
	var faults []Fault
	for i, one := range all {
		m, found := Structured(one)
		for _, f := range found {
			f.Index = i
			faults = append(faults, f)
		}
		messages[i] = m
	}
	return messages, faults
}

// setMember sets an attribute to a JSON value, converted to a string.
func (b *builder) setMember(name string, value []byte) {
	switch value[0] {
	case '"':
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			b.reportFault(name, err.Error())
			return
		}
		b.setAttribute(name, text)
	case '{', '[':
		b.reportFault(name, "want a string, an integer, true or false, got "+eventjson.TypeOf(value))
	default:
		if bytes.ContainsAny(value, ".eE") && value[0] != 't' && value[0] != 'f' {
			b.reportFault(name, "want a string, an integer, true or false, got "+domain.Shorten(string(value)))
			return
		}
		if isCore(name) {
			b.reportFault(name, "want a string, got "+eventjson.TypeOf(value))
			return
		}
		b.setAttribute(name, string(value))
	}
}

func isCore(name string) bool {
	switch name {
	case "specversion", "id", "source", "type", "subject", "time", "dataschema", "datacontenttype":
		return true
	}
	return false
}

// setData sets the data of the event. value is the JSON of the "data" member, and encoded is the
// JSON of the "data_base64" member; a missing member is nil.
func (b *builder) setData(value, encoded []byte) {
	m := &b.message
	switch {
	case value != nil && encoded != nil:
		b.reportFault("data_base64", "data is there, too; send one of the two")
	case encoded != nil:
		var text string
		if encoded[0] != '"' || json.Unmarshal(encoded, &text) != nil {
			b.reportFault("data_base64", "want a string, got "+eventjson.TypeOf(encoded))
			return
		}
		payload, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			b.reportFault("data_base64", "want Base64")
			return
		}
		m.Payload = payload
	case value == nil:
	case m.HasJSON():
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			b.reportFault("data", err.Error())
			return
		}
		m.Payload = compact.Bytes()
	case value[0] == '"':
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			b.reportFault("data", err.Error())
			return
		}
		m.Payload = []byte(text)
	default:
		b.reportFault("data", "want a string, since datacontenttype is not one of JSON, got "+eventjson.TypeOf(value))
	}
}
