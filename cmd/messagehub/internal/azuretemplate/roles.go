package azuretemplate

import (
	"strings"

	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/domain"
)

const identityAPI = "2023-01-31"

// addIdentities adds the hub's and the scaler's identities. The identities of
// domains already exist, so they are parameters of the template.
func (r *resources) addIdentities() {
	used := make(map[string]bool)
	for _, i := range r.table.Identities {
		if i.Domain != (domain.Origin{}) {
			principal := r.addParam(param{
				name: uniqueSymbol(used, "domain"+capitalizeName(i.Domain.String())) + "PrincipalId", kind: "string",
				description: "Object id of the managed identity or service principal of the domain " + i.Domain.String() + "; empty: it gets no roles", value: "",
			})
			r.principals[i.Name], r.enabled[i.Name] = principal, negation{isEmpty(principal)}
			continue
		}
		made := r.addResource(&templateResource{
			comment: i.Use,
			symbol:  i.Name, kind: "Microsoft.ManagedIdentity/userAssignedIdentities", api: identityAPI, name: text{paramRef("prefix"), "-" + i.Name},
			body: orderedObject{{"location", r.location}},
		})
		r.principals[i.Name] = runtime{made, "principalId"}
	}
}

// findIdentity returns the resource of an identity that the template creates.
func (r *resources) findIdentity(name string) *templateResource {
	return r.principals[name].(runtime).of
}

// addGrants adds the hub's Cosmos DB role, and all role assignments.
func (r *resources) addGrants() {
	used := make(map[string]bool)
	for _, g := range r.table.Grants {
		scope := r.scopes[g.Scope]
		if g.Scope.Kind == deployment.DatabaseScope {
			r.addDataGrant(&g, scope)
			continue
		}
		who := strings.TrimPrefix(g.Identity, "domain:")
		role := g.Role.Name[strings.LastIndexByte(g.Role.Name, ' ')+1:]
		r.addResource(&templateResource{
			comment: g.Identity + ": " + g.Why,
			symbol:  uniqueSymbol(used, "role"+capitalizeName(who)+capitalizeName(role)+capitalizeName(scope.symbol)), kind: "Microsoft.Authorization/roleAssignments", api: "2022-04-01",
			scope: scope, condition: r.enabled[g.Identity], name: guid(resourceID{scope}, r.principalName(g.Identity), g.Role.ID, g.Identity),
			body: orderedObject{{"properties", orderedObject{
				{"roleDefinitionId", functionCall{"subscriptionResourceId", []any{"Microsoft.Authorization/roleDefinitions", g.Role.ID}}},
				{"principalId", r.principals[g.Identity]},
				{"principalType", "ServicePrincipal"},
			}}},
		})
	}
}

// principalName returns an expression that is unique for each principal. Azure
// can evaluate it before the identity exists.
func (r *resources) principalName(identity string) expr {
	if p, ok := r.principals[identity].(runtime); ok {
		return resourceID{p.of}
	}
	return r.principals[identity]
}

func (r *resources) addDataGrant(g *deployment.Grant, database *templateResource) {
	scope := text{resourceID{r.cosmos}, "/dbs/" + r.table.Database}
	actions := array{}
	for _, a := range r.table.DataRole.Actions {
		actions = append(actions, a)
	}
	role := r.addResource(&templateResource{
		comment: "The data actions that the hub uses",
		symbol:  "dataRole", kind: "Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions", api: cosmosAPI, parent: r.cosmos,
		name: guid(resourceID{r.cosmos}, r.table.Database, r.table.DataRole.Name),
		body: orderedObject{{"properties", orderedObject{
			{"roleName", r.table.DataRole.Name + " " + r.table.Database},
			{"type", "CustomRole"},
			{"assignableScopes", array{scope}},
			{"permissions", array{orderedObject{{"dataActions", actions}}}},
		}}},
	})
	r.addResource(&templateResource{
		comment: g.Identity + ": " + g.Why,
		symbol:  "dataRole" + capitalizeName(g.Identity), kind: "Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments", api: cosmosAPI, parent: r.cosmos,
		name: guid(resourceID{database}, r.principalName(g.Identity), r.table.DataRole.Name),
		body: orderedObject{{"properties", orderedObject{
			{"roleDefinitionId", resourceID{role}},
			{"principalId", r.principals[g.Identity]},
			{"scope", scope},
		}}},
	})
}
