package objectjson

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/messagehub/messagehub/api/internal/cloudevent"
	"github.com/messagehub/messagehub/domain"
)

// readCloudEvent reads an event in the JSON format of CloudEvents.
func (p *messageParser) readCloudEvent(n *jsonNode) {
	e, name := n.event, n.findMember("type").stringValue()
	if !isOfBlob(name) && e.fault == nil {
		e.markIgnored(name)
		return
	}
	m, faults := cloudevent.Structured(n.text)
	data := "data"
	if n.findMember(data).text == nil {
		data = "data_base64"
	}
	p.readSplitCloudEvent(n, name, &m, faults, &jsonNode{parent: n, name: data, text: m.Payload, event: e})
}

// readSplitCloudEvent reads a CloudEvent with the attributes in m and the given data.
func (p *messageParser) readSplitCloudEvent(n *jsonNode, name string, m *domain.Message, faults []cloudevent.Fault, data *jsonNode) {
	for _, f := range faults {
		n.findMember(f.Attribute).reportFault(InvalidCloudEvent, "%s: %s", f.Attribute, f.Detail)
	}
	if n.event.fault != nil {
		return
	}
	p.events.Causes = domain.AddCause(p.events.Causes, m.Attributes["traceparent"], m.Attributes["tracestate"])
	if !m.HasJSON() {
		n.findMember("datacontenttype").reportFault(WrongType, "datacontenttype: want JSON, got %q", domain.Shorten(m.ContentType))
		return
	}
	if len(data.text) > 0 && !p.checkShape(data) {
		return
	}
	data.expectStart('{', "an object")
	(&azureEvent{name: name, topic: n.findMember("source"), subject: n.findMember("subject"), time: n.findMember("time"), data: data, id: m.ID}).readInto(n.event)
}

// IsBinary reports whether a request contains an event in the binary mode of CloudEvents.
func IsBinary(h http.Header) bool { return cloudevent.IsBinary(h) }

// ParseBinary reads the event of a request in the binary mode of CloudEvents. It fails like Parse.
// Pointers to faults start with the name of an attribute, or with data.
func ParseBinary(h http.Header, body []byte, options Options) (*Events, error) {
	p := newParser(options)
	from := &carrier{messageID: options.MessageID, text: body}
	e := p.newEvent(from)
	name := h.Get("Ce-Type")
	if name != "" && !isOfBlob(name) {
		e.markIgnored(name)
		return p.events, p.finishEvent(e, from)
	}
	m, faults := cloudevent.Binary(h, body)
	attributes, err := json.Marshal(m.Attributes)
	if err != nil {
		return p.events, fmt.Errorf("read attributes: %w", err)
	}
	n := &jsonNode{text: attributes, event: e}
	p.readSplitCloudEvent(n, name, &m, faults, &jsonNode{parent: n, name: "data", text: m.Payload, event: e})
	return p.events, p.finishEvent(e, from)
}
