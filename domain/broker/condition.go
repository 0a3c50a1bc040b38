package broker

import (
	"errors"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Condition restricts a change to certain states of a party. The zero Condition permits every state, even that the
// party does not exist.
type Condition struct {
	Exists          bool      // the party must exist
	Versions        []string  // the party must have one of these versions; nil permits any
	UnmodifiedSince time.Time // the party must not have changed after this time, in whole seconds; zero permits any
}

// ErrChanged reports that a party does not meet the [Condition] of a change. Its kind is Conflict.
var ErrChanged = errors.New("it has changed, or does not exist")

func newChangedError() error { return domain.Errorf(domain.Conflict, "%w", ErrChanged) }

// requiresParty reports whether the party must already exist.
func (c *Condition) requiresParty() bool {
	return c.Exists || c.Versions != nil || !c.UnmodifiedSince.IsZero()
}

// canChange reports whether the condition permits a change of p. p is nil if the party does not exist.
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
