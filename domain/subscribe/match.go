package subscribe

import (
	"errors"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Match restricts a change to some versions of a subscription. The zero Match permits any
// version, including a subscription that does not exist.
type Match struct {
	Exists   bool // any version
	Versions []string
}

// isSet reports whether the change is for a subscription that its owner has read.
func (m *Match) isSet() bool { return m.Exists || m.Versions != nil }

// canChange reports whether the change may be made to a version.
func (m *Match) canChange(v repository.DefinitionVersion) bool {
	return !m.isSet() || m.Exists || slices.Contains(m.Versions, string(v))
}

// ErrChanged reports that a subscription has no version of the [Match] of a change. Its kind is
// Conflict.
var ErrChanged = errors.New("the subscription has another version")

func newChangedError() error { return domain.Errorf(domain.Conflict, "%w", ErrChanged) }

// changeError returns the error of a change that was meant for m. A subscription that changed
// between reading and writing no longer has a version of m.
func (m *Match) changeError(err error) error {
	if len(m.Versions) > 0 && domain.KindOf(err) == domain.Conflict {
		return newChangedError()
	}
	return err
}
