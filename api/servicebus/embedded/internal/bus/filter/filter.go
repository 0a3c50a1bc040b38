// Package filter is the language of topic subscriptions: conditions that choose
// messages, and actions that change them on the way.
//
//	sys.Label LIKE 'order-%' AND (Priority > 3 OR EXISTS(Customer))
//	SET sys.Label = 'urgent'; SET Priority = Priority + 1; REMOVE Note
//
// A name without a scope is an application property (user.), one with sys. is a
// property of the message itself. Logic has three values, as in SQL: what
// concerns a property that is not there is unknown, and a message passes only
// if its condition is true.
//
// A text is parsed once into a Condition or an Action, which are safe for use
// by many goroutines and never change. Values are string, bool, int64,
// float64, time.Time, []byte and nil; others compare with nothing.
package filter

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxLength is how long a condition or an action can be, in bytes. It bounds
// how deep one can nest as well.
const MaxLength = 1024

var (
	// ErrSyntax reports a text that is not of the language: correct it.
	ErrSyntax = errors.New("the expression is not valid")
	// ErrEvaluate reports a message for which an expression has no value.
	ErrEvaluate = errors.New("the expression cannot be evaluated")
)

// A Message is what conditions look at.
type Message interface {
	// Property returns an application property.
	Property(name string) (value any, there bool)

	// System returns a property of the message by the name that Canonical
	// gives it, nil if it is not set.
	System(name string) any
}

// A Target is what actions change.
type Target interface {
	Message

	// SetProperty sets an application property.
	SetProperty(name string, value any)

	// RemoveProperty removes an application property, if it is there.
	RemoveProperty(name string)

	// SetSystem sets a property of the message; nil removes it. It fails
	// if the property has another type, or is not for actions to change.
	SetSystem(name string, value any) error
}

// A Condition chooses messages.
type Condition struct{ root evaluator }

// An Action changes messages.
type Action struct{ steps []actionStep }

type actionStep struct {
	property propertyName
	value    evaluator // nil: remove it
}

// ParseCondition reads a condition. Parameters are named with their @, and
// stand where the text has that name.
func ParseCondition(text string, parameters map[string]any) (*Condition, error) {
	p, err := newParser(text, parameters)
	if err != nil {
		return nil, err
	}
	root := p.parseOr()
	return &Condition{root}, p.checkEnd()
}

// ParseAction reads SET and REMOVE statements, separated by ; or by a comma.
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

// Match says whether the condition is true of a message.
func (c *Condition) Match(m Message) (bool, error) {
	v, err := c.root(m)
	return err == nil && v == true, err
}

// Apply changes a message; a failure leaves it as the steps before did.
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

// systemNames are the properties of a message, by lower-case name.
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

// Canonical returns the one name of a system property, whatever the case.
func Canonical(name string) (string, bool) {
	n, ok := systemNames[strings.ToLower(name)]
	return n, ok
}

// Normalize turns the numbers of Go into those of the language.
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
