package identity

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// A Role is a role that the hub reads from a token.
type Role string

// The fixed roles. In addition, there is a role domain:NAME for each origin NAME.
const (
	RoleActor        Role = "actor"
	RoleDomain       Role = "domain" // every principal with a role domain:NAME also has this role
	RoleOperatorRead Role = "operator.read"
	RoleOperator     Role = "operator"
	RoleMetrics      Role = "metrics"
)

const domainPrefix = "domain:"

// A Principal is the sender of a request. It must not be modified.
type Principal struct {
	Issuer  string // issuer of the token; "" if none exists
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
	Groups []domain.Group // groups in which the principal may act for the actor; empty means all groups
}

// NewOperator returns the principal for an operator token from the hub's configuration.
func NewOperator(name string) *Principal {
	return &Principal{Subject: name, roles: []Role{RoleOperator}}
}

// Has reports whether p has a role. A principal with RoleOperator also has RoleOperatorRead.
func (p *Principal) Has(role Role) bool {
	return slices.Contains(p.roles, role) || role == RoleOperatorRead && slices.Contains(p.roles, RoleOperator)
}

// maxRecordName is the maximum length of a name in a record, in characters.
const maxRecordName = 200

// RecordName returns the name of p for the records of operators' orders: the subject of the token,
// followed by remark in parentheses. remark is a name that the operator has entered, and is not
// verified.
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

// Grants returns the grants of p, one for each actor.
func (p *Principal) Grants() []Grant { return p.grants }

// Grant returns the grant of p for an actor. It returns false if p has none.
func (p *Principal) Grant(actor domain.ActorID) (Grant, bool) {
	i := slices.IndexFunc(p.grants, func(g Grant) bool { return g.Actor == actor })
	if i < 0 {
		return Grant{}, false
	}
	return p.grants[i], true
}

// addGrant adds a grant. If p already has a grant for the same actor, the result covers the groups
// of both grants.
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

// MayAnnounce reports whether p may send events with the given origin.
func (p *Principal) MayAnnounce(origin domain.Origin) bool { return slices.Contains(p.origins, origin) }

// Origins returns the origins whose events p may send.
func (p *Principal) Origins() []domain.Origin { return p.origins }

// rolesOf returns the hub's roles among texts, the values of a claim. It ignores unknown values,
// which may be roles of other programs.
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
