package find

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// MaxID is the maximum length of an id, in bytes.
const MaxID = 256

// A parsedID is the result of parsing a text as every kind of id.
type parsedID struct {
	event    domain.EventID
	bundle   domain.BundleID // the bundle, if the text is the id of a bundle or of a content request
	actor    domain.ActorID  // the actor, if the text is the id of a content request
	delivery domain.DeliveryID
	trace    domain.TraceID
	kinds    map[Kind]bool // kinds of id that the text can be
}

// parseID parses a text as every kind of id. It fails with Invalid if the text is empty, is longer than [MaxID], or
// contains a character that no id has. If the text is no known kind of id, kinds is empty.
func parseID(text string) (parsedID, error) {
	id := parsedID{kinds: make(map[Kind]bool)}
	switch {
	case text == "":
		return id, domain.Errorf(domain.Invalid, "id: missing; send the id of an event, a bundle, a request, a delivery or a trace")
	case len(text) > MaxID:
		return id, domain.Errorf(domain.Invalid, "id: want at most %d characters, got %d", MaxID, len(text))
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return id, domain.Errorf(domain.Invalid, "id: want one line of text, without control characters, got %q", domain.Shorten(text))
	}
	if event, err := domain.ParseEventID(text); err == nil {
		id.event, id.bundle = event, domain.BundleID(event)
		id.kinds[Event], id.kinds[Bundle] = true, true
		return id, nil
	}
	if bundle, actor, ok := parseRequest(text); ok {
		id.bundle, id.actor = bundle, actor
		id.kinds[Request] = true
		return id, nil
	}
	if delivery, err := domain.ParseDeliveryID(text); err == nil {
		id.delivery = delivery
		id.kinds[Delivery] = true
	}
	if trace, ok := parseTrace(text); ok {
		id.trace = trace
		id.kinds[Trace] = true
	}
	return id, nil
}

// parseTrace parses a trace id, in upper or lower case, or a traceparent.
func parseTrace(text string) (domain.TraceID, bool) {
	if trace, err := domain.ParseTraceID(strings.ToLower(text)); err == nil {
		return trace, true
	}
	c, err := domain.ParseTraceContext(text, "")
	return c.TraceID, err == nil
}

// parseRequest parses the id of a content request. All requests for one bundle have the same id.
func parseRequest(text string) (bundle domain.BundleID, actor domain.ActorID, ok bool) {
	first, second, isPair := strings.Cut(text, "_")
	bundle, err := domain.ParseBundleID(first)
	if err != nil || !isPair {
		return bundle, actor, false
	}
	actor, err = domain.ParseActorID(second)
	return bundle, actor, err == nil
}
