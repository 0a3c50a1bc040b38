package cosmos

import (
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// A key consists of parts that are joined by a bar. No actor id and no origin contains a bar, so different
// parts never result in the same key.

func headKey(recipient domain.ActorID) string { return recipient.String() }

func catalogKey(recipient domain.ActorID, origin domain.Origin) string {
	return recipient.String() + "|" + origin.String()
}

func cabinetKey(k domain.CabinetKey) string {
	return k.Recipient.String() + "|" + nameOf(k)
}

// A cabinetName identifies a cabinet of a recipient by its origin and content type.
type cabinetName = string

func nameOf(k domain.CabinetKey) cabinetName {
	return k.Origin.String() + "|" + k.ContentType.String()
}

// A namer caches the last result of nameOf: most events of a Save follow an event of the same cabinet.
type namer struct {
	last domain.CabinetKey
	name cabinetName
}

func (n *namer) cabinetName(k domain.CabinetKey) cabinetName {
	if n.name == "" || k != n.last {
		n.last, n.name = k, nameOf(k)
	}
	return n.name
}

// cabinetOf parses the result of nameOf.
func cabinetOf(recipient domain.ActorID, name cabinetName) (domain.CabinetKey, error) {
	origin, contentType, _ := strings.Cut(name, "|")
	o, err := domain.ParseOrigin(origin)
	if err != nil {
		return domain.CabinetKey{}, domain.Errorf(domain.Damaged, "head of %s names cabinet %q: %w", recipient, name, err)
	}
	c, err := domain.ParseContentType(contentType)
	if err != nil {
		return domain.CabinetKey{}, domain.Errorf(domain.Damaged, "head of %s names cabinet %q: %w", recipient, name, err)
	}
	return domain.CabinetKey{Recipient: recipient, Origin: o, ContentType: c}, nil
}
