package objectjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/messagehub/messagehub/api/internal/eventjson"
)

const (
	maxShells = 4 // maximum nesting of messages; SNS inside SQS counts as two
	maxLists  = 2 // maximum nesting of lists in a message; a list of messages that contain Records counts as two
)

// parseValue reads the events of a value. shells is the number of messages that enclose the value.
func (p *messageParser) parseValue(n *jsonNode, from *carrier, shells int) error {
	n.text = bytes.Trim(n.text, " \t\r\n")
	if len(n.text) > 0 && n.text[0] == '[' {
		return p.parseElements(n, from, shells, 1)
	}
	return p.parseItem(n, from, shells, 0)
}

// parseElements reads the events of an array. shells is the number of messages that enclose the
// array. lists is the nesting of lists in the innermost message, including this array.
func (p *messageParser) parseElements(n *jsonNode, from *carrier, shells, lists int) error {
	index := 0
	for text, err := range eventjson.Elements(n.text) {
		switch {
		case err != nil && shells == 0:
			return fmt.Errorf("%w: %w", ErrNotJSON, err)
		case err != nil: // the unreadable rest of the message counts as one invalid event
			n.event = p.newEvent(from)
			n.reportFault(NotJSON, "%v", err)
			return p.finishEvent(n.event, from)
		}
		if err := p.parseItem(n.elementNode(index, text), from, shells, lists); err != nil {
			return err
		}
		index++
	}
	return nil
}

// parseItem reads a value that is not an array: one event, or a message that contains events.
func (p *messageParser) parseItem(n *jsonNode, from *carrier, shells, lists int) error {
	n.event = p.newEvent(from)
	for _, name := range [...]string{"Records", "Messages"} {
		if list := n.findMember(name); len(list.text) > 0 && list.text[0] == '[' && n.countMembers(name) == 1 {
			if lists == maxLists {
				list.reportFault(TooManyShells, "want at most %d lists within lists", maxLists)
				return p.finishEvent(n.event, from)
			}
			return p.parseElements(list, from, shells, lists+1)
		}
	}
	if !p.checkShape(n) {
		if n.parent == nil && n.event.fault.Reason == NotJSON {
			return fmt.Errorf("%w: %s", ErrNotJSON, n.event.fault.Detail)
		}
		return p.finishEvent(n.event, from)
	}
	switch inside, inner := n.innerMessage(); {
	case inside == nil:
		p.parseEvent(n)
	case n.event.fault == nil && shells == maxShells:
		n.reportFault(TooManyShells, "want at most %d messages within messages", maxShells)
	case n.event.fault == nil:
		return p.parseValue(inside, inner, shells+1)
	}
	return p.finishEvent(n.event, from)
}

// checkShape reports a fault if the value is not JSON, or if common parsers read it differently.
func (p *messageParser) checkShape(n *jsonNode) bool {
	if !utf8.Valid(n.text) {
		n.reportFault(NotJSON, "want UTF-8")
		return false
	}
	var raw json.RawMessage
	if err := json.Unmarshal(n.text, &raw); err != nil {
		n.reportFault(NotJSON, "%v", err)
		return false
	}
	if f := p.shape.Check(n.text); f != nil {
		n.reportFault(f.Reason, "%s", f.Detail)
		n.event.fault.Pointer += f.Pointer
		return false
	}
	return true
}

// innerMessage returns the text inside an SQS or SNS message, and the carrier that represents the
// message. It returns nil, nil if the value is neither an SQS nor an SNS message.
func (n *jsonNode) innerMessage() (inside *jsonNode, inner *carrier) {
	sns := n
	if n.hasMember("Sns") { // Lambda wraps an SNS message in this member
		sns = n.objectMember("Sns")
	}
	switch {
	case sns.hasMember("TopicArn"), sns.hasMember("Type") && sns.hasMember("Message"):
		if kind := sns.findMember("Type").optionalString(); kind == "SubscriptionConfirmation" {
			sns.reportFault(NotConfirmed, "open the SubscribeURL of this message to confirm the subscription; the hub does not open it")
		}
		return sns.findMember("Message").innerNode("sns", sns.findMember("MessageId"))
	case n.hasMember("body"):
		return n.findMember("body").innerNode("sqs", n.findMember("messageId"))
	case n.hasMember("Body"):
		return n.findMember("Body").innerNode("sqs", n.findMember("MessageId"))
	}
	return nil, nil
}

// innerNode parses the content of a string. It returns a node with the same pointer, and the
// message with the given id as a carrier.
func (n *jsonNode) innerNode(kind string, id *jsonNode) (*jsonNode, *carrier) {
	text := []byte(n.stringValue())
	inner := &carrier{text: text}
	if name := id.optionalString(); name != "" {
		inner = &carrier{messageID: kind + " " + name}
	}
	return &jsonNode{parent: n.parent, name: n.name, text: text}, inner
}

// parseEvent reads an event according to its format.
func (p *messageParser) parseEvent(n *jsonNode) {
	switch {
	case n.hasMember("detail-type"):
		n.readEventBridge()
	case n.hasMember("specversion"):
		p.readCloudEvent(n)
	case n.hasMember("eventType"):
		p.readEventGrid(n)
	case n.hasMember("eventName"), n.hasMember("s3"):
		n.readS3Record()
	case n.hasMember("Event") && n.hasMember("Bucket"): // S3 sends this test event when notifications are configured
		n.event.markIgnored(n.findMember("Event").optionalString())
	default:
		n.reportFault(UnknownForm, "want an event of S3, EventBridge, Event Grid or CloudEvents, or a message of SQS or SNS with some")
	}
}
