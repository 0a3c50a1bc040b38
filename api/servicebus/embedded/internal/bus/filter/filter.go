// Package filter implements the language of topic subscriptions: conditions that select
// messages, and actions that change them.
//
//	sys.Label LIKE 'order-%' AND (Priority > 3 OR EXISTS(Customer))
//	SET sys.Label = 'urgent'; SET Priority = Priority + 1; REMOVE Note
//
// A name without a scope, or with the scope user., is an application property. A name with the
// scope sys. is a property of the message itself. Logic has three values, as in SQL: a comparison
// with a missing property is unknown, and a message matches only if its condition is true.
//
// An expression is parsed into a Condition or an Action, which are immutable and safe for
// concurrent use. Values are string, bool, int64, float64, time.Time, []byte and nil; comparisons
// with values of other types are unknown.
package filter

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxLength is the maximum length of a condition or an action, in bytes. It also limits the nesting
// of expressions.
const MaxLength = 1024

var (
	// ErrSyntax reports a condition or action with a syntax error.
	ErrSyntax = errors.New("the expression is not valid")
	// ErrEvaluate reports an expression that cannot be evaluated for a message.
	ErrEvaluate = errors.New("the expression cannot be evaluated")
)

// A Message provides the properties that conditions test.
type Message interface {
	// Property returns an application property.
	Property(name string) (value any, there bool)

	// System returns the system property with a canonical name, or nil if it is not set.
	System(name string) any
}

// A Target is a Message that actions can change.
type Target interface {
	Message

	// SetProperty sets an application property.
	SetProperty(name string, value any)

	// RemoveProperty removes an application property, if it exists.
	RemoveProperty(name string)

	// SetSystem sets a system property; nil removes it. It returns an error if the property has a different type, or if
	// actions must not change it.
	SetSystem(name string, value any) error
}

// A Condition selects messages.
type Condition struct{ root evaluator }

// An Action changes messages.
type Action struct{ steps []actionStep }

type actionStep struct {
	property propertyName
	value    evaluator // nil removes the property
}

// ParseCondition parses a condition. It replaces each parameter in the condition, such as @limit, with its value. The
// keys of parameters include the @.
func ParseCondition(text string, parameters map[string]any) (*Condition, error) {
	p, err := newParser(text, parameters)
	if err != nil {
		return nil, err
	}
	root := p.parseOr()
	return &Condition{root}, p.checkEnd()
}

// ParseAction parses SET and REMOVE statements, separated by semicolons or commas.
func ParseAction(text string, parameters map[string]any) (*Action, error) {
	p, err := newParser(text, parameters)
	if err != nil {
		return nil, err
	}
	a := &Action{}
	for p.failure == nil && p.token.kind != endToken {
		s := actionStep{}
		switch {
		case p.takeWord("SET"):
			s.property = p.parseProperty()
			p.expectSymbol("=")
			s.value = p.parseOr()
		case p.takeWord("REMOVE"):
			s.property = p.parseProperty()
		default:
			p.recordError("expected SET or REMOVE")
		}
		a.steps = append(a.steps, s)
		for p.takeSymbol(";") || p.takeSymbol(",") {
			continue
		}
	}
	if len(a.steps) == 0 {
		p.recordError("expected SET or REMOVE")
	}
	return a, p.checkEnd()
}

// Match reports whether the condition is true for a message.
func (c *Condition) Match(m Message) (bool, error) {
	v, err := c.root(m)
	return err == nil && v == true, err
}

// Apply applies the action to a message. If a step fails, the changes of earlier steps remain.
func (a *Action) Apply(t Target) error {
	for _, s := range a.steps {
		if s.value == nil {
			if !s.property.system {
				t.RemoveProperty(s.property.name)
			} else if err := t.SetSystem(s.property.name, nil); err != nil {
				return fmt.Errorf("%w: %w", ErrEvaluate, err)
			}
			continue
		}
		v, err := s.value(t)
		if err != nil {
			return err
		}
		if !s.property.system {
			t.SetProperty(s.property.name, v)
		} else if err := t.SetSystem(s.property.name, v); err != nil {
			return fmt.Errorf("%w: %w", ErrEvaluate, err)
		}
	}
	return nil
}

// systemNames maps lower-case names to canonical names of system properties.
var systemNames = func() map[string]string {
	names := map[string]string{"label": "Subject"}
	for _, n := range []string{
		"ContentType", "CorrelationId", "DeliveryCount", "EnqueuedTimeUtc", "ExpiresAtUtc", "MessageId", "PartitionKey",
		"ReplyTo", "ReplyToSessionId", "ScheduledEnqueueTimeUtc", "SequenceNumber", "SessionId", "Subject", "TimeToLive", "To",
	} {
		names[strings.ToLower(n)] = n
	}
	return names
}()

// Canonical returns the canonical name of a system property. It ignores case, and returns false if the property does
// not exist.
func Canonical(name string) (string, bool) {
	n, ok := systemNames[strings.ToLower(name)]
	return n, ok
}

// Normalize converts any Go integer or float to int64 or float64.
func Normalize(v any) any {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int8:
		return int64(n)
	case int16:
		return int64(n)
	case int32:
		return int64(n)
	case uint:
		return fromUnsigned(uint64(n))
	case uint8:
		return int64(n)
	case uint16:
		return int64(n)
	case uint32:
		return int64(n)
	case uint64:
		return fromUnsigned(n)
	case float32:
		return float64(n)
	case time.Duration:
		return n.Seconds()
	}
	return v
}

func fromUnsigned(n uint64) any {
	if n > 1<<63-1 {
		return float64(n)
	}
	return int64(n)
}
