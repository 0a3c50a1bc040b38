package domainclient

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

// The application properties that carry a W3C Trace Context. Clients of Microsoft write the third one.
const (
	parentProperty     = "traceparent"
	stateProperty      = "tracestate"
	diagnosticProperty = "Diagnostic-Id"
)

// setTrace gives a message the trace context of an event.
func setTrace(m *azservicebus.Message, e *Event) {
	if e.TraceParent == "" {
		return
	}
	m.ApplicationProperties[parentProperty], m.ApplicationProperties[diagnosticProperty] = e.TraceParent, e.TraceParent
	if e.TraceState != "" {
		m.ApplicationProperties[stateProperty] = e.TraceState
	}
}

// traceOf returns the trace context of a message, "" if it has none. It is as the hub has written it.
func traceOf(m *azservicebus.ReceivedMessage) (parent, state string) {
	parent, _ = m.ApplicationProperties[parentProperty].(string)
	state, _ = m.ApplicationProperties[stateProperty].(string)
	return parent, state
}
