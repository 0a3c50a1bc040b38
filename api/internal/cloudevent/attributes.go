package cloudevent

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Fault describes a fault of an event or of one of its attributes.
type Fault struct {
	Attribute string // name of the faulty attribute; "" if the whole event is faulty
	Detail    string
	Index     int // index of the event in its batch
}

// A builder collects the attributes of an event and their faults.
type builder struct {
	message domain.Message
	faults  []Fault
}

func newBuilder() *builder {
	return &builder{message: domain.Message{Attributes: make(map[string]string)}}
}

func (b *builder) reportFault(attribute, detail string) {
	b.faults = append(b.faults, Fault{Attribute: domain.Shorten(attribute), Detail: detail})
}

// setAttribute sets an attribute, or adds a fault.
func (b *builder) setAttribute(name, value string) {
	if detail := checkName(name); detail != "" {
		b.reportFault(name, detail)
		return
	}
	if detail := checkValue(name, value); detail != "" {
		b.reportFault(name, detail)
		return
	}
	if name == "datacontenttype" {
		b.message.ContentType = value
		return
	}
	b.message.Attributes[name] = value
}

func checkName(name string) string {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return "want a name of a-z and 0-9"
	}
	return ""
}

func checkValue(name, value string) string {
	switch name {
	case "specversion":
		if value != "1.0" {
			return "want 1.0, got " + domain.Shorten(value)
		}
	case "id", "type", "subject", "datacontenttype":
		if strings.TrimSpace(value) == "" {
			return "want a text that is not blank"
		}
	case "source":
		if _, err := url.Parse(value); err != nil || value == "" || strings.Contains(value, " ") {
			return "want a URI reference, got " + domain.Shorten(value)
		}
	case "dataschema":
		if u, err := url.Parse(value); err != nil || !u.IsAbs() {
			return "want an absolute URI, got " + domain.Shorten(value)
		}
	case "time":
		if _, err := time.Parse(time.RFC3339, strings.ToUpper(value)); err != nil {
			return "want a time such as 2026-03-01T12:00:00Z, got " + domain.Shorten(value)
		}
	}
	return ""
}

// finish returns the message, or the faults if there are any.
func (b *builder) finish() (domain.Message, []Fault) {
	m := &b.message
	for _, name := range [...]string{"specversion", "id", "source", "type"} {
		if _, ok := m.Attributes[name]; !ok && !b.isReported(name) {
			b.reportFault(name, "missing")
		}
	}
	if len(b.faults) > 0 {
		return domain.Message{}, b.faults
	}
	if len(m.Payload) == 0 {
		m.Payload = nil
	}
	m.ID = MessageID(m.Attributes["source"], m.Attributes["id"])
	if err := m.Check(); err != nil {
		b.reportFault("", err.Error())
	}
	return *m, b.faults
}

func (b *builder) isReported(name string) bool {
	for _, f := range b.faults {
		if f.Attribute == name {
			return true
		}
	}
	return false
}

// MessageID returns the message id for the event with the given source and id. Different pairs have
// different message ids, because a source contains no blank.
func MessageID(source, id string) string {
	text := source + " " + id
	if len(text) <= domain.MaxMessageID {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
