package node

import (
	"fmt"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
)

// The AMQP descriptors of rules and filters.
const (
	describedRule     uint64 = 0x137_0000_0004
	describedNoAction uint64 = 0x137_0000_0005
	describedAction   uint64 = 0x137_0000_0006
	describedSQL      uint64 = 0x13_7000_0006
	describedTrue     uint64 = 0x13_7000_0007
	describedFalse    uint64 = 0x13_7000_0008
	describedMatch    uint64 = 0x13_7000_0009
)

func (m *manager) addRule(r clientRequest, done func(requestReply)) {
	name, ok := r.arguments.Get("rule-name").(string)
	if !ok || name == "" {
		done(missingArgument("rule-name"))
		return
	}
	description, ok := r.arguments.Get("rule-description").(amqp.Map)
	if !ok {
		done(missingArgument("rule-description"))
		return
	}
	rule, err := readRule(name, description)
	if err != nil {
		done(errorReply(err))
		return
	}
	m.busOf().AddRule(m.path, rule, func(err error) { done(newReply(nil, err)) })
}

func readRule(name string, description amqp.Map) (bus.Rule, error) {
	rule := bus.Rule{Name: name}
	if action, ok := description.Get("sql-rule-action").(amqp.Map); ok {
		rule.Action, _ = action.Get("expression").(string)
	}
	if sql, ok := description.Get("sql-filter").(amqp.Map); ok {
		rule.Filter.SQL, _ = sql.Get("expression").(string)
		return rule, nil
	}
	match, ok := description.Get("correlation-filter").(amqp.Map)
	if !ok {
		return rule, fmt.Errorf("%w: the rule %s has neither an sql-filter nor a correlation-filter", bus.ErrInvalid, name)
	}
	text := func(key string) string {
		s, _ := match.Get(key).(string)
		return s
	}
	c := &bus.Correlation{
		CorrelationID: text("correlation-id"), MessageID: text("message-id"), To: text("to"), ReplyTo: text("reply-to"),
		Subject: text("label"), SessionID: text("session-id"), ReplyToSessionID: text("reply-to-session-id"), ContentType: text("content-type"),
	}
	if properties, ok := match.Get("properties").(amqp.Map); ok {
		c.Properties = map[string]any{}
		for key, value := range stringMap(properties) {
			c.Properties[key] = toFilterValue(value)
		}
	}
	rule.Filter.Correlation = c
	return rule, nil
}

func (m *manager) removeRule(r clientRequest, done func(requestReply)) {
	name, ok := r.arguments.Get("rule-name").(string)
	if !ok || name == "" {
		done(missingArgument("rule-name"))
		return
	}
	m.busOf().DeleteRule(m.path, name, func(err error) { done(newReply(nil, err)) })
}

func (m *manager) listRules(r clientRequest, done func(requestReply)) {
	rules, err := m.busOf().Rules(m.path)
	if err != nil {
		done(errorReply(err))
		return
	}
	skip, _ := r.arguments.Get("skip").(int32)
	top, ok := r.arguments.Get("top").(int32)
	if !ok || top < 1 || skip < 0 {
		done(missingArgument("top"))
		return
	}
	rules = rules[min(int(skip), len(rules)):]
	rules = rules[:min(int(top), len(rules))]
	if len(rules) == 0 {
		done(requestReply{status: 204, description: "No Content"})
		return
	}
	list := make(amqp.List, len(rules))
	for i, rule := range rules {
		list[i] = amqp.Map{{Key: "rule-description", Value: describeRule(rule)}}
	}
	done(newReply(amqp.Map{{Key: "rules", Value: list}}, nil))
}

// describeRule encodes a rule as an AMQP value for clients.
func describeRule(rule bus.Rule) amqp.Described {
	action := amqp.Described{Descriptor: describedNoAction, Value: amqp.List{}}
	if rule.Action != "" {
		action = amqp.Described{Descriptor: describedAction, Value: amqp.List{rule.Action, nil}}
	}
	return amqp.Described{Descriptor: describedRule, Value: amqp.List{describeFilter(rule.Filter), action, rule.Name}}
}

func describeFilter(f bus.Filter) amqp.Described {
	switch c := f.Correlation; {
	case c != nil:
		var properties amqp.Map
		for name, value := range c.Properties {
			if v, err := toWireValue(value); err == nil {
				properties = append(properties, amqp.Entry{Key: name, Value: v})
			}
		}
		return amqp.Described{Descriptor: describedMatch, Value: amqp.List{
			textOrNull(c.CorrelationID), textOrNull(c.MessageID), textOrNull(c.To), textOrNull(c.ReplyTo), textOrNull(c.Subject),
			textOrNull(c.SessionID), textOrNull(c.ReplyToSessionID), textOrNull(c.ContentType), properties,
		}}
	case f.SQL != "":
		return amqp.Described{Descriptor: describedSQL, Value: amqp.List{f.SQL, nil}}
	case f.False:
		return amqp.Described{Descriptor: describedFalse, Value: amqp.List{}}
	}
	return amqp.Described{Descriptor: describedTrue, Value: amqp.List{}}
}

// textOrNull returns s, or nil if s is empty.
func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
