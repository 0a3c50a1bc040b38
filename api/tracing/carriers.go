package tracing

import (
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

const (
	parentHeader = "Traceparent" // canonical form of the header name for net/http
	stateHeader  = "Tracestate"
)

// FromHeader returns the trace context in the headers of a request. The result is zero unless the
// request has exactly one Traceparent header and its value is valid.
func FromHeader(h http.Header) domain.TraceContext {
	parents := h[parentHeader]
	if len(parents) != 1 {
		return domain.TraceContext{}
	}
	c, _ := domain.ParseTraceContext(parents[0], joinStates(h[stateHeader]))
	return c
}

// joinStates joins the values of several tracestate headers.
func joinStates(states []string) string {
	if len(states) == 1 {
		return states[0]
	}
	return strings.Join(states, ",")
}

// AddToHeader adds the trace context c to the headers of a request. A zero c adds nothing.
func AddToHeader(h http.Header, c domain.TraceContext) {
	if c.IsZero() {
		return
	}
	h[parentHeader] = []string{c.Parent()}
	if c.State != "" {
		h[stateHeader] = []string{c.State}
	}
}

// The application properties of a Service Bus message with its trace context. Microsoft's clients
// write Diagnostic-Id, and read both traceparent and Diagnostic-Id.
const (
	parentProperty     = "traceparent"
	stateProperty      = "tracestate"
	diagnosticProperty = "Diagnostic-Id"
)

// FromProperties returns the trace context in the application properties of a message. It reads
// Diagnostic-Id if traceparent is missing. The result is zero if the value is missing or invalid.
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

// AddToProperties adds the trace context c to the application properties of a message. A zero c
// adds nothing.
func AddToProperties(properties map[string]any, c domain.TraceContext) {
	if c.IsZero() {
		return
	}
	properties[parentProperty], properties[diagnosticProperty] = c.Parent(), c.Parent()
	if c.State != "" {
		properties[stateProperty] = c.State
	}
}
