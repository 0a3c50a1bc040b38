package azuretemplate

import (
	"strings"

	"github.com/messagehub/messagehub/cmd/node/deployment"
)

const busAPI = "2024-01-01"

// addBus adds the Service Bus namespace and its queues. The namespace accepts
// no keys.
func (r *resources) addBus() {
	name := r.accountParam("serviceBusName", "Name of the Service Bus namespace", r.names.bus, text{paramRef("prefix"), "-", unique()})
	sku := r.addParam(param{
		name: "serviceBusSku", kind: "string", description: "Tier of the Service Bus namespace; private endpoints need Premium", value: "Standard", allowed: array{"Standard", "Premium"},
	})
	tier := conditional{r.isPrivate, "Premium", sku}
	r.bus = r.addResource(&templateResource{
		symbol: "serviceBus", kind: "Microsoft.ServiceBus/namespaces", api: busAPI, name: name,
		body: orderedObject{
			{"location", r.location},
			{"sku", orderedObject{{"name", tier}, {"tier", tier}}},
			{"properties", orderedObject{
				{"disableLocalAuth", true},
				{"minimumTlsVersion", "1.2"},
				{"publicNetworkAccess", r.publicAccess()},
			}},
		},
	})
	used := make(map[string]bool)
	for i := range r.table.Queues {
		q := &r.table.Queues[i]
		life := q.TimeToLive
		if life == "" {
			life = deployment.Forever
		}
		r.scopes[deployment.Scope{Kind: deployment.QueueScope, Name: q.Name}] = r.addResource(&templateResource{
			comment: q.Use,
			symbol:  uniqueSymbol(used, "queue"+capitalizeName(q.Name)), kind: "Microsoft.ServiceBus/namespaces/queues", api: busAPI, parent: r.bus, name: q.ResourceName(),
			body: orderedObject{{"properties", orderedObject{
				{"requiresSession", q.Sessions},
				{"lockDuration", q.Lock},
				{"maxDeliveryCount", int(q.MaxDeliveries)},
				{"defaultMessageTimeToLive", life},
				{"deadLetteringOnMessageExpiration", q.DeadLettersExpired},
				{"maxSizeInMegabytes", int(q.MaxMegabytes)},
			}}},
		})
	}
	r.addPrivateEndpoint("serviceBus", "namespace", r.bus)
}

// uniqueSymbol returns symbol, or a variant of it that is not in used, and adds
// the result to used.
func uniqueSymbol(used map[string]bool, symbol string) string {
	for used[strings.ToLower(symbol)] {
		symbol += "2"
	}
	used[strings.ToLower(symbol)] = true
	return symbol
}
