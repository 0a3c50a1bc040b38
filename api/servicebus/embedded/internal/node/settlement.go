package node

import (
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
)

// settlementOf converts a delivery state to a settlement of the bus. answer is the delivery state to send in reply.
func settlementOf(state any) (how bus.Settlement, answer any) {
	switch state := state.(type) {
	case amqp.Accepted:
		return bus.Settlement{Outcome: bus.Complete}, state
	case amqp.Modified:
		how := bus.Settlement{Outcome: bus.Abandon, Properties: stringMap(state.Annotations)}
		if state.UndeliverableHere {
			how.Outcome = bus.Defer
		}
		return how, state
	case amqp.Rejected:
		how := bus.Settlement{Outcome: bus.DeadLetter}
		if state.Error == nil {
			return how, amqp.Rejected{}
		}
		how.Properties = stringMap(state.Error.Info)
		how.Reason, _ = how.Properties[reasonProperty].(string)
		how.Description, _ = how.Properties[descriptionProperty].(string)
		delete(how.Properties, reasonProperty)
		delete(how.Properties, descriptionProperty)
		if state.Error.Condition != deadLetterAsked && how.Reason == "" {
			how.Reason, how.Description = string(state.Error.Condition), state.Error.Description
		}
		return how, amqp.Rejected{} // the reply contains no error, because clients treat an error as a failed settlement
	}
	return bus.Settlement{Outcome: bus.Release}, amqp.Released{}
}

// The application properties with which a client states why it dead-letters a message.
const (
	reasonProperty      = "DeadLetterReason"
	descriptionProperty = "DeadLetterErrorDescription"
)

// stringMap converts a map with string or symbol keys to a Go map.
func stringMap(m amqp.Map) map[string]any {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]any, len(m))
	for _, e := range m {
		switch key := e.Key.(type) {
		case string:
			out[key] = e.Value
		case amqp.Symbol:
			out[string(key)] = e.Value
		}
	}
	return out
}
