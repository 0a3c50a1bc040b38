package tracing

import (
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

const (
	parentHeader = "Traceparent" // in the canonical form of net/http
	stateHeader  = "Tracestate"
)

// FromHeader returns the trace context in the headers of a request. It is zero
// unless the headers have exactly one, and that is valid.
func FromHeader(h http.Header) domain.TraceContext {
	parents := h[parentHeader]
	if len(parents) != 1 {
		return domain.TraceContext{}
	}
	c, _ := domain.ParseTraceContext(parents[0], joinStates(h[stateHeader]))
	return c
}

// joinStates joins several headers tracestate.
func joinStates(states []string) string {
	if len(states) == 1 {
		return states[0]
	}
	return strings.Join(states, ",")
}

// AddToHeader adds the trace context c to the headers of a request, if it names
// a span.
func AddToHeader(h http.Header, c domain.TraceContext) {
	if c.IsZero() {
		return
	}
	h[parentHeader] = []string{c.Parent()}
	if c.State != "" {
		h[stateHeader] = []string{c.State}
	}
}

// The application properties of a message on Service Bus. Clients of Microsoft
// write Diagnostic-Id, and read both.
const (
	parentProperty     = "traceparent"
	stateProperty      = "tracestate"
	diagnosticProperty = "Diagnostic-Id"
)

// FromProperties returns the trace context in the application properties of a
// message, zero if there is no valid one. Diagnostic-Id is used if traceparent
// is missing.
func FromProperties(properties map[string]any) domain.TraceContext {
	parent, found := properties[parentProperty]
	if !found {
		parent = properties[diagnosticProperty]
	}
	text, _ := parent.(string)
	if text == "" {
		return domain.TraceContext{}
	}
	state, _ := properties[stateProperty].(string)
	c, _ := domain.ParseTraceContext(text, state)
	return c
}

// AddToProperties gives the application properties of a message the context c, if it names a
// span.
func AddToProperties(properties map[string]any, c domain.TraceContext) {
	if c.IsZero() {
		return
	}
	properties[parentProperty], properties[diagnosticProperty] = c.Parent(), c.Parent()
	if c.State != "" {
		properties[stateProperty] = c.State
	}
}
