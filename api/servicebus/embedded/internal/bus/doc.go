// Package bus is the state machine of a Service Bus-compatible broker.
package bus
