package domainclient

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

// Application properties that contain a W3C Trace Context. Microsoft's clients set Diagnostic-Id.
const (
	parentProperty     = "traceparent"
	stateProperty      = "tracestate"
	diagnosticProperty = "Diagnostic-Id"
)

// setTrace adds the trace context of an event to a message.
func setTrace(m *azservicebus.Message, e *Event) {
	if e.TraceParent == "" {
		return
	}
	m.ApplicationProperties[parentProperty], m.ApplicationProperties[diagnosticProperty] = e.TraceParent, e.TraceParent
	if e.TraceState != "" {
		m.ApplicationProperties[stateProperty] = e.TraceState
	}
}

// traceOf returns the trace context of a message. It returns "" twice if the message has none.
func traceOf(m *azservicebus.ReceivedMessage) (parent, state string) {
	parent, _ = m.ApplicationProperties[parentProperty].(string)
	state, _ = m.ApplicationProperties[stateProperty].(string)
	return parent, state
}
