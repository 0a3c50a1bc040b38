package bus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus/filter"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// DefaultRule is the name of the rule of a new subscription.
const DefaultRule = "$Default"

const (
	maxRules    = 2000
	maxRuleName = 50
)

// A compiledRule is a Rule with its parsed condition and action.
type compiledRule struct {
	Rule
	condition *filter.Condition // parsed condition of an SQL filter
	action    *filter.Action    // parsed action, or nil
}

func compileRule(r Rule) (*compiledRule, error) {
	made := &compiledRule{Rule: r}
	var err error
	if r.Filter.SQL != "" {
		if made.condition, err = filter.ParseCondition(r.Filter.SQL, r.Filter.Parameters); err != nil {
			return nil, fmt.Errorf("%w: filter of rule %s: %w", ErrInvalid, r.Name, err)
		}
	}
	if strings.TrimSpace(r.Action) != "" {
		if made.action, err = filter.ParseAction(r.Action, r.Filter.Parameters); err != nil {
			return nil, fmt.Errorf("%w: action of rule %s: %w", ErrInvalid, r.Name, err)
		}
	}
	kinds := 0
	for _, is := range []bool{r.Filter.SQL != "", r.Filter.Correlation != nil, r.Filter.False} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return nil, fmt.Errorf("%w: rule %s has more than one filter", ErrInvalid, r.Name)
	case r.Name == "" || len(r.Name) > maxRuleName:
		return nil, fmt.Errorf("%w: the name of a rule has 1 to %d bytes", ErrInvalid, maxRuleName)
	}
	return made, nil
}

// AddRule adds a rule to a subscription. It returns ErrExists if the subscription already has a rule of this name.
func (b *Bus) AddRule(subscription string, r Rule, done func(error)) {
	b.runOperation(done, func() error {
		e, err := b.findSubscription(subscription)
		switch {
		case err != nil:
			return err
		case e.ruleAt(r.Name) >= 0:
			return fmt.Errorf("%w: rule %s", ErrExists, r.Name)
		case len(e.rules) >= maxRules:
			return fmt.Errorf("%w: a subscription has at most %d rules", ErrQuotaExceeded, maxRules)
		}
		return b.setRule(e, r)
	})
}

// DeleteRule removes a rule. A subscription without rules receives nothing.
func (b *Bus) DeleteRule(subscription, name string, done func(error)) {
	b.runOperation(done, func() error {
		e, err := b.findSubscription(subscription)
		if err != nil {
			return err
		}
		at := e.ruleAt(name)
		if at < 0 {
			return fmt.Errorf("%w: rule %s", ErrNotFound, name)
		}
		b.journal.removeKey(ruleKey(e.main.id, strings.ToLower(name)))
		e.rules = slices.Delete(e.rules, at, at+1)
		return nil
	})
}

// Rules returns the rules of a subscription, sorted by name.
func (b *Bus) Rules(subscription string) ([]Rule, error) {
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	e, err := b.findSubscription(subscription)
	if err != nil {
		return nil, err
	}
	rules := make([]Rule, len(e.rules))
	for i, r := range e.rules {
		rules[i] = r.Rule
	}
	return rules, nil
}

func (b *Bus) findSubscription(path string) (*entity, error) {
	e, _, err := b.findEntity(path)
	if err == nil && e.config.Kind != Subscription {
		err = fmt.Errorf("%w: %s is not a subscription, and has no rules", ErrNotAllowed, path)
	}
	return e, err
}

func (e *entity) ruleAt(name string) int {
	return slices.IndexFunc(e.rules, func(r *compiledRule) bool { return strings.EqualFold(r.Name, name) })
}

// setRule adds a rule to a subscription and stores it.
func (b *Bus) setRule(e *entity, r Rule) error {
	made, err := compileRule(r)
	if err != nil {
		return err
	}
	record, err := b.encodeRule(r)
	if err != nil {
		return fmt.Errorf("%w: rule %s: %w", ErrInvalid, r.Name, err)
	}
	b.journal.putKey(ruleKey(e.main.id, strings.ToLower(r.Name)), record)
	e.enlistRule(made)
	return nil
}

func (e *entity) enlistRule(r *compiledRule) {
	e.rules = append(e.rules, r)
	slices.SortFunc(e.rules, func(a, b *compiledRule) int { return cmp.Compare(a.Name, b.Name) })
}

// A ruleRecord is the stored form of a rule. Its values are encoded like application properties, because JSON does not
// preserve their types.
type ruleRecord struct {
	Rule       Rule
	Parameters []byte
	Properties []byte
}

func (b *Bus) encodeRule(r Rule) (record []byte, err error) {
	stored := ruleRecord{Rule: r}
	if stored.Parameters, err = b.codec.Merge(nil, r.Filter.Parameters, nil); err != nil {
		return nil, err
	}
	stored.Rule.Filter.Parameters = nil
	if c := r.Filter.Correlation; c != nil {
		if stored.Properties, err = b.codec.Merge(nil, c.Properties, nil); err != nil {
			return nil, err
		}
		plain := *c
		plain.Properties = nil
		stored.Rule.Filter.Correlation = &plain
	}
	return json.Marshal(stored)
}

func (b *Bus) decodeRule(record []byte) (Rule, error) {
	var stored ruleRecord
	if err := json.Unmarshal(record, &stored); err != nil {
		return Rule{}, err
	}
	r := stored.Rule
	var err error
	if r.Filter.Parameters, err = b.codec.Decode(stored.Parameters); err != nil {
		return Rule{}, err
	}
	if r.Filter.Correlation != nil {
		r.Filter.Correlation.Properties, err = b.codec.Decode(stored.Properties)
	}
	return r, err
}

func (b *Bus) loadRules(e *entity) error {
	var failure error
	prefix := newKey(tableRule, e.main.id, 0)
	b.journal.scanRange(prefix, endOfPrefix(prefix), func(k, v []byte) bool {
		var made *compiledRule
		r, err := b.decodeRule(v)
		if failure = err; failure == nil {
			made, failure = compileRule(r)
		}
		if failure != nil {
			failure = fmt.Errorf("%w: rule %q of %s: %w", disk.ErrDamaged, k[len(prefix):], e.config.Path, failure)
			return false
		}
		e.enlistRule(made)
		return true
	})
	return failure
}
