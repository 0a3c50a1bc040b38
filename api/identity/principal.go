package identity

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// A Role is a role in a token.
type Role string

// The roles without a name in them. The role domain:NAME contains an origin.
const (
	RoleActor        Role = "actor"
	RoleDomain       Role = "domain" // every principal with a role domain:NAME has it
	RoleOperatorRead Role = "operator.read"
	RoleOperator     Role = "operator"
	RoleMetrics      Role = "metrics"
)

const domainPrefix = "domain:"

// A Principal is the sender of a request. It must not be changed.
type Principal struct {
	Issuer  string // "": the token was not made by an issuer
	Subject string
	Client  string
	Tenant  string

	roles   []Role
	origins []domain.Origin
	grants  []Grant
}

// A Grant is the right of a principal to act for an actor.
type Grant struct {
	Actor  domain.ActorID
	Groups []domain.Group // groups on which it may act; none: all
}

// NewOperator returns the principal of a token in the hub's settings.
func NewOperator(name string) *Principal {
	return &Principal{Subject: name, roles: []Role{RoleOperator}}
}

// Has reports whether p has a role. An operator also has the role for reading.
func (p *Principal) Has(role Role) bool {
	return slices.Contains(p.roles, role) || role == RoleOperatorRead && slices.Contains(p.roles, RoleOperator)
}

// maxRecordName is the limit of the name in a record, in characters.
const maxRecordName = 200

// RecordName returns the name in the records of orders: the subject of the
// token, and in parentheses a name that its owner has typed, which proves
// nothing.
func (p *Principal) RecordName(remark string) string {
	who := cmp.Or(p.Subject, p.Client)
	if remark != "" {
		who += " (" + remark + ")"
	}
	if utf8.RuneCountInString(who) > maxRecordName {
		who = string([]rune(who)[:maxRecordName-1]) + "…"
	}
	return who
}

// Grants returns the actors for which p may act.
func (p *Principal) Grants() []Grant { return p.grants }

// Grant returns the right of p to act for an actor, and whether there is one.
func (p *Principal) Grant(actor domain.ActorID) (Grant, bool) {
	i := slices.IndexFunc(p.grants, func(g Grant) bool { return g.Actor == actor })
	if i < 0 {
		return Grant{}, false
	}
	return p.grants[i], true
}

// addGrant adds a grant. Two grants for one actor are combined into one for the
// groups of both.
func (p *Principal) addGrant(g Grant) {
	i := slices.IndexFunc(p.grants, func(x Grant) bool { return x.Actor == g.Actor })
	switch {
	case i < 0:
		p.grants = append(p.grants, g)
	case len(g.Groups) == 0:
		p.grants[i].Groups = nil
	case len(p.grants[i].Groups) > 0:
		p.grants[i].Groups = slices.Concat(p.grants[i].Groups, g.Groups)
	}
}

// MayAnnounce reports whether p may send events of an origin.
func (p *Principal) MayAnnounce(origin domain.Origin) bool { return slices.Contains(p.origins, origin) }

// Origins returns the origins for which p may send events.
func (p *Principal) Origins() []domain.Origin { return p.origins }

// rolesOf returns the roles of the hub among the texts of a claim. Other texts
// are roles in other programs.
func rolesOf(texts []string) (roles []Role, origins []domain.Origin) {
	for _, text := range texts {
		switch role := Role(text); role {
		case RoleActor, RoleOperatorRead, RoleOperator, RoleMetrics:
			roles = append(roles, role)
		default:
			name, isDomain := strings.CutPrefix(text, domainPrefix)
			origin, err := domain.ParseOrigin(name)
			if !isDomain || err != nil {
				continue
			}
			origins = append(origins, origin)
		}
	}
	if len(origins) > 0 {
		roles = append(roles, RoleDomain)
	}
	return roles, origins
}
