package broker

import (
	"errors"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Condition restricts a change to some states of a party. The zero Condition permits any
// state, including a party that does not exist.
type Condition struct {
	Exists          bool      // the party must exist, in any version
	Versions        []string  // the party must have one of these versions; nil: any version
	UnmodifiedSince time.Time // the party must not have changed after this time, in whole seconds; zero: any time
}

// ErrChanged reports that a party does not fulfil the [Condition] of a change. Its kind is
// Conflict.
var ErrChanged = errors.New("it has changed, or does not exist")

func newChangedError() error { return domain.Errorf(domain.Conflict, "%w", ErrChanged) }

// requiresParty reports whether the party must exist before the change.
func (c *Condition) requiresParty() bool {
	return c.Exists || c.Versions != nil || !c.UnmodifiedSince.IsZero()
}

// canChange reports whether the change may be made to p; nil means a party that does not exist.
func (c *Condition) canChange(p *repository.Party) bool {
	switch {
	case !c.requiresParty():
		return true
	case p == nil:
		return false
	case !c.UnmodifiedSince.IsZero() && p.Changed.After(c.UnmodifiedSince):
		return false
	}
	return c.Versions == nil || slices.Contains(c.Versions, string(p.Version))
}
