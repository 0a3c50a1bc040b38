package subscribe

import (
	"errors"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Match restricts a change to certain versions of a subscription. The zero Match permits the
// change of any version, and the creation of a subscription.
type Match struct {
	Exists   bool // the subscription must exist, in any version
	Versions []string
}

// isSet reports whether m restricts the change. If it does, it does not permit that a subscription
// is created.
func (m *Match) isSet() bool { return m.Exists || m.Versions != nil }

// canChange reports whether m permits a change of the version v.
func (m *Match) canChange(v repository.DefinitionVersion) bool {
	return !m.isSet() || m.Exists || slices.Contains(m.Versions, string(v))
}

// ErrChanged reports that the [Match] of a change does not permit the current version of the
// subscription. Its kind is Conflict.
var ErrChanged = errors.New("the subscription has another version")

func newChangedError() error { return domain.Errorf(domain.Conflict, "%w", ErrChanged) }

// changeError returns the error for a change whose write failed with err. A Conflict means that the
// subscription has changed since it was read. If m names versions, it does not include the new
// version, so the result is ErrChanged.
func (m *Match) changeError(err error) error {
	if len(m.Versions) > 0 && domain.KindOf(err) == domain.Conflict {
		return newChangedError()
	}
	return err
}
