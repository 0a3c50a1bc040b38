package objectjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/messagehub/messagehub/api/internal/eventjson"
)

const (
	maxShells = 4 // messages within messages; SNS in SQS are two
	maxLists  = 2 // lists within lists of a message; a list of messages with Records are two
)

// value reads the events of a value, which is inside a number of messages.
func (p *parser) value(n *node, from *delivery, shells int) error {
	n.text = bytes.Trim(n.text, " \t\r\n")
	if len(n.text) > 0 && n.text[0] == '[' {
		return p.elements(n, from, shells, 1)
	}
	return p.one(n, from, shells, 0)
}

// elements reads the events of an array, which is inside a number of messages, and is in that many lists
// of its message, itself one of them.
func (p *parser) elements(n *node, from *delivery, shells, lists int) error {
	index := 0
	for text, err := range eventjson.Elements(n.text) {
		switch {
		case err != nil && shells == 0:
			return fmt.Errorf("%w: %w", ErrNotJSON, err)
		case err != nil: // the rest of the message is one event that cannot be read
			n.event = p.newEvent(from)
			n.fail(NotJSON, "%v", err)
			return p.end(n.event, from)
		}
		if err := p.one(n.element(index, text), from, shells, lists); err != nil {
			return err
		}
		index++
	}
	return nil
}

// one reads what is not an array: an event, or a message with events.
func (p *parser) one(n *node, from *delivery, shells, lists int) error {
	n.event = p.newEvent(from)
	for _, name := range [...]string{"Records", "Messages"} {
		if list := n.get(name); len(list.text) > 0 && list.text[0] == '[' && n.count(name) == 1 {
			if lists == maxLists {
				list.fail(TooManyShells, "want at most %d lists within lists", maxLists)
				return p.end(n.event, from)
			}
			return p.elements(list, from, shells, lists+1)
		}
	}
	if !p.check(n) {
		if n.parent == nil && n.event.fault.Reason == NotJSON {
			return fmt.Errorf("%w: %s", ErrNotJSON, n.event.fault.Detail)
		}
		return p.end(n.event, from)
	}
	switch inside, inner := n.message(); {
	case inside == nil:
		p.event(n)
	case n.event.fault == nil && shells == maxShells:
		n.fail(TooManyShells, "want at most %d messages within messages", maxShells)
	case n.event.fault == nil:
		return p.value(inside, inner, shells+1)
	}
	return p.end(n.event, from)
}

// check reports a value that is not JSON, or that parsers do not read alike.
func (p *parser) check(n *node) bool {
	if !utf8.Valid(n.text) {
		n.fail(NotJSON, "want UTF-8")
		return false
	}
	var raw json.RawMessage
	if err := json.Unmarshal(n.text, &raw); err != nil {
		n.fail(NotJSON, "%v", err)
		return false
	}
	if f := p.shape.Check(n.text); f != nil {
		n.fail(f.Reason, "%s", f.Detail)
		n.event.fault.Pointer += f.Pointer
		return false
	}
	return true
}

// message returns the text inside a message of SQS or SNS, and its delivery. It returns nil if the
// value is no such message.
func (n *node) message() (inside *node, inner *delivery) {
	sns := n
	if n.has("Sns") { // as Lambda has it
		sns = n.object("Sns")
	}
	switch {
	case sns.has("TopicArn"), sns.has("Type") && sns.has("Message"):
		if kind := sns.get("Type").optional(); kind == "SubscriptionConfirmation" {
			sns.fail(NotConfirmed, "open the SubscribeURL of this message to confirm the subscription; the hub does not open it")
		}
		return sns.get("Message").inside("sns", sns.get("MessageId"))
	case n.has("body"):
		return n.get("body").inside("sqs", n.get("messageId"))
	case n.has("Body"):
		return n.get("Body").inside("sqs", n.get("MessageId"))
	}
	return nil, nil
}

// inside returns the text of a string, at the same place, and the delivery of the message with an id.
func (n *node) inside(kind string, id *node) (*node, *delivery) {
	text := []byte(n.value())
	inner := &delivery{text: text}
	if name := id.optional(); name != "" {
		inner = &delivery{messageID: kind + " " + name}
	}
	return &node{parent: n.parent, name: n.name, text: text}, inner
}

// event reads an event by its form.
func (p *parser) event(n *node) {
	switch {
	case n.has("detail-type"):
		n.eventBridge()
	case n.has("specversion"):
		p.cloudEvent(n)
	case n.has("eventType"):
		p.eventGrid(n)
	case n.has("eventName"), n.has("s3"):
		n.s3Record()
	case n.has("Event") && n.has("Bucket"): // which S3 sends when notifications are set up
		n.event.ignore(n.get("Event").optional())
	default:
		n.fail(UnknownForm, "want an event of S3, EventBridge, Event Grid or CloudEvents, or a message of SQS or SNS with some")
	}
}
