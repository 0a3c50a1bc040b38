package bus

import (
	"fmt"
	"maps"
	"slices"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus/filter"
)

// publishCopies stores a message in each subscription whose rules select it.
func (b *Bus) publishCopies(topic *entity, m Message, hops int) {
	b.assignNumber(topic, &m)
	v := &messageView{message: &m, codec: b.codec}
	for _, s := range topic.subscriptions {
		if !s.canSend() {
			continue
		}
		copies, err := s.makeCopies(v)
		if err != nil && s.config.DeadLetterOnFilterFail {
			b.storeDeadLetter(s.deadLetters, s.main, m, hops, ReasonFilter, err.Error())
		}
		for _, c := range copies {
			b.routeMessage(s, c, hops)
		}
	}
}

// makeCopies evaluates the rules of a subscription. It returns one copy for all matching rules without an action, and
// one copy for each matching rule with an action. A rule that cannot be evaluated adds none.
func (e *entity) makeCopies(v *messageView) (copies []Message, failure error) {
	plain := false
	for _, r := range e.rules {
		ok, err := r.isMatch(v)
		switch {
		case err != nil:
			failure = err
		case !ok:
		case r.action == nil:
			if !plain {
				plain = true
				copies = append(copies, *v.message)
			}
		default:
			c, err := v.applyAction(r.action)
			if err != nil {
				failure = err
				continue
			}
			copies = append(copies, c)
		}
	}
	return copies, failure
}

func (r *compiledRule) isMatch(v *messageView) (ok bool, err error) {
	v.used = false
	switch {
	case r.condition != nil:
		ok, err = r.condition.Match(v)
	case r.Filter.Correlation != nil:
		ok = r.Filter.Correlation.isMatch(v)
	default:
		ok = !r.Filter.False
	}
	if err == nil && v.used {
		err = v.failure
	}
	return ok, err
}

func (c *Correlation) isMatch(v *messageView) bool {
	session := ""
	if v.message.SessionID != nil {
		session = *v.message.SessionID
	}
	m := v.message
	for _, pair := range [][2]string{
		{c.CorrelationID, m.CorrelationID},
		{c.MessageID, m.ID},
		{c.To, m.To},
		{c.ReplyTo, m.ReplyTo},
		{c.Subject, m.Subject},
		{c.SessionID, session},
		{c.ReplyToSessionID, m.ReplyToSessionID},
		{c.ContentType, m.ContentType},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	for name, want := range c.Properties {
		if got, there := v.Property(name); !there || !filter.Equal(got, want) {
			return false
		}
	}
	return true
}

// A messageView makes a message accessible to filters and actions. It decodes the application properties when they are
// first used.
type messageView struct {
	message    *Message
	codec      Codec
	properties map[string]any
	failure    error // error of the decoding
	used       bool  // true after the first attempt to decode the properties

	changes map[string]any
	removed []string
}

func (v *messageView) decodeProperties() map[string]any {
	v.used = true
	if v.properties == nil {
		if v.properties, v.failure = v.codec.Decode(v.message.ApplicationProperties); v.properties == nil {
			v.properties = map[string]any{}
		}
	}
	return v.properties
}

// Property implements filter.Message.
func (v *messageView) Property(name string) (any, bool) {
	value, there := v.decodeProperties()[name]
	return value, there
}

// System implements filter.Message.
func (v *messageView) System(name string) any {
	m := v.message
	if text := m.textField(name); text != nil {
		return valueIfSet(*text, *text != "")
	}
	switch name {
	case "SessionId":
		if m.SessionID != nil {
			return *m.SessionID
		}
	case "TimeToLive":
		return valueIfSet(m.TTL, m.TTL != 0)
	case "ScheduledEnqueueTimeUtc":
		return valueIfSet(m.ScheduledFor, !m.ScheduledFor.IsZero())
	case "SequenceNumber":
		return m.EnqueuedSequenceNumber // the number in the topic, because the subscription has not assigned one yet
	case "DeliveryCount":
		return int64(m.DeliveryCount)
	}
	return nil
}

func valueIfSet(value any, is bool) any {
	if is {
		return value
	}
	return nil
}

// textField returns a pointer to the field for a string system property.
func (m *Message) textField(name string) *string {
	switch name {
	case "ContentType":
		return &m.ContentType
	case "CorrelationId":
		return &m.CorrelationID
	case "MessageId":
		return &m.ID
	case "PartitionKey":
		return &m.PartitionKey
	case "ReplyTo":
		return &m.ReplyTo
	case "ReplyToSessionId":
		return &m.ReplyToSessionID
	case "Subject":
		return &m.Subject
	case "To":
		return &m.To
	}
	return nil
}

// applyAction applies an action to a copy of the message.
func (v *messageView) applyAction(a *filter.Action) (Message, error) {
	m := *v.message
	own := &messageView{message: &m, codec: v.codec, properties: maps.Clone(v.decodeProperties()), changes: map[string]any{}}
	if v.failure != nil {
		return m, v.failure
	}
	if err := a.Apply(own); err != nil {
		return m, err
	}
	if len(own.changes)+len(own.removed) == 0 {
		return m, nil
	}
	merged, err := v.codec.Merge(m.ApplicationProperties, own.changes, own.removed)
	if err != nil {
		return m, fmt.Errorf("%w: %w", filter.ErrEvaluate, err)
	}
	m.ApplicationProperties = merged
	return m, nil
}

// SetProperty implements filter.Target.
func (v *messageView) SetProperty(name string, value any) {
	v.properties[name], v.changes[name] = value, value
	v.removed = slices.DeleteFunc(v.removed, func(n string) bool { return n == name })
}

// RemoveProperty implements filter.Target.
func (v *messageView) RemoveProperty(name string) {
	delete(v.properties, name)
	delete(v.changes, name)
	v.removed = append(v.removed, name)
}

// SetSystem implements filter.Target.
func (v *messageView) SetSystem(name string, value any) error {
	m := v.message
	text, isText := value.(string)
	field := m.textField(name)
	switch {
	case !isText && value != nil || field == nil && name != "SessionId" || name == "MessageId":
		return fmt.Errorf("sys.%s cannot be set to a %T", name, value)
	case len(text) > maxID && name == "SessionId":
		return fmt.Errorf("sys.%s has at most %d bytes", name, maxID)
	case field != nil:
		*field = text
	case value == nil:
		m.SessionID = nil
	default:
		m.SessionID = &text
	}
	m.Rewritten = true
	return nil
}
