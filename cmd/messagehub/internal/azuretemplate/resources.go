package azuretemplate

import (
	"cmp"
	"encoding/json"
	"net"
	"net/url"
	"strings"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
)

// ARM returns the template in JSON. It creates the accounts, containers,
// queues, identities and roles for this configuration.
func ARM(cfg *config.Config) []byte { return writeARM(newResources(cfg).template) }

// Bicep returns the same template as ARM, in Bicep.
func Bicep(cfg *config.Config) []byte { return writeBicep(newResources(cfg).template) }

// resources builds the template of the accounts, identities and roles. Another
// template creates the hub.
type resources struct {
	*template
	table  deployment.Table
	names  names // names of the Cosmos, Service Bus and storage accounts
	cosmos *templateResource
	bus    *templateResource
	blob   *templateResource
	scopes map[deployment.Scope]*templateResource

	principals map[string]expr // principal ids by identity name
	enabled    map[string]expr // conditions of optional identities, by identity name

	location, subnet, isPrivate, zones expr
}

// names contains the account names of a configuration. If a name is "", the
// template chooses it.
type names struct{ cosmos, bus, blob string }

func newResources(cfg *config.Config) *resources {
	r := &resources{
		template: &template{about: "Accounts, queues, containers, identities and roles of MessageHub. Written by messagehub provision --format; do not edit it, but write it again."},
		table:    deployment.NewTable(cfg),
		names: names{
			azureName(cfg.Cosmos.Endpoint, ".documents."), azureName("https://"+cfg.ServiceBus.Namespace, ".servicebus."), azureName(cfg.Blob.Endpoint, ".blob."),
		},
		scopes: make(map[deployment.Scope]*templateResource), principals: make(map[string]expr), enabled: make(map[string]expr),
	}
	r.location = r.addParam(param{name: "location", kind: "string", description: "Region of all resources", value: groupLocation()})
	r.addParam(param{name: "prefix", kind: "string", description: "What the names of resources begin with: up to 11 lower case letters", value: "messagehub"})
	r.zones = r.addParam(param{name: "zoneRedundant", kind: "bool", description: "Keep replicas in several availability zones, in regions that have them", value: true})
	r.subnet = r.addParam(param{name: "privateEndpointSubnetId", kind: "string", description: "Subnet of private endpoints; empty: the accounts are reached over the internet. With it, Service Bus has the tier Premium", value: ""})
	r.isPrivate = negation{isEmpty(r.subnet)}
	r.addIdentities()
	r.addCosmos()
	r.addBus()
	r.addStorage()
	r.addGrants()
	r.addSettings(cfg)
	return r
}

// azureName returns the first label of the endpoint's host, which is the
// account name, if the host is in this DNS zone of Azure; otherwise "".
func azureName(endpoint, zone string) string {
	u, err := url.Parse(endpoint)
	if err != nil || net.ParseIP(u.Hostname()) != nil {
		return ""
	}
	name, _, found := strings.Cut(u.Hostname(), zone)
	if !found || strings.Contains(name, ".") {
		return ""
	}
	return name
}

// accountParam adds the parameter for the name of an account, and returns a
// reference to it.
func (r *resources) accountParam(name, description, configured string, otherwise expr) expr {
	var value any = otherwise
	if configured != "" {
		value = configured
	}
	return r.addParam(param{name: name, kind: "string", description: description, value: value})
}

// publicAccess returns the value of the accounts' property publicNetworkAccess.
func (r *resources) publicAccess() expr { return conditional{r.isPrivate, "Disabled", "Enabled"} }

// addPrivateEndpoint adds a private endpoint for an account, and a DNS record
// for the endpoint.
func (r *resources) addPrivateEndpoint(symbolName, group string, account *templateResource) {
	zone := r.addParam(param{name: symbolName + "DnsZoneId", kind: "string", description: "Private DNS zone of " + group + " endpoints; empty: names are resolved by other means", value: ""})
	endpoint := r.addResource(&templateResource{
		symbol: symbolName + "Endpoint", kind: "Microsoft.Network/privateEndpoints", api: "2023-11-01", condition: r.isPrivate,
		name: text{account.name, "-" + symbolName},
		body: orderedObject{
			{"location", r.location},
			{"properties", orderedObject{
				{"subnet", orderedObject{{"id", r.subnet}}},
				{"privateLinkServiceConnections", array{orderedObject{
					{"name", symbolName},
					{"properties", orderedObject{{"privateLinkServiceId", resourceID{account}}, {"groupIds", array{group}}}},
				}}},
			}},
		},
	})
	r.addResource(&templateResource{
		symbol: symbolName + "EndpointName", kind: "Microsoft.Network/privateEndpoints/privateDnsZoneGroups", api: "2023-11-01", parent: endpoint,
		condition: and(r.isPrivate, negation{isEmpty(zone)}), name: "default",
		body: orderedObject{{"properties", orderedObject{{"privateDnsZoneConfigs", array{orderedObject{{"name", symbolName}, {"properties", orderedObject{{"privateDnsZoneId", zone}}}}}}}}},
	})
}

// addSettings adds the output settings, which lists the settings for a hub that
// uses the template's resources.
func (r *resources) addSettings(cfg *config.Config) {
	endpoint, namespace := runtime{r.cosmos, "documentEndpoint"}, text{r.bus.name, ".servicebus.windows.net"}
	blobs := runtime{r.blob, "primaryEndpoints.blob"}
	hub := r.findIdentity(deployment.Hub)
	settings := array{}
	set := func(name string, value any) {
		settings = append(settings, orderedObject{{"name", name}, {"value", value}})
	}
	set("MESSAGEHUB_PRODUCTION", "true")
	set("MESSAGEHUB_COSMOS_ENDPOINT", endpoint)
	set("MESSAGEHUB_COSMOS_DATABASE", r.table.Database)
	set("MESSAGEHUB_SERVICEBUS_NAMESPACE", namespace)
	set("MESSAGEHUB_SERVICEBUS_FIFO_QUEUE", cmp.Or(cfg.ServiceBus.FIFO, "none"))
	set("MESSAGEHUB_SERVICEBUS_PLAIN_QUEUE", cmp.Or(cfg.ServiceBus.Plain, "none"))
	set("MESSAGEHUB_OBJECTS_QUEUE", cmp.Or(cfg.Objects.Queue, "none"))
	set("MESSAGEHUB_BLOB_ENDPOINT", blobs)
	set("MESSAGEHUB_BLOB_CONTAINER", cfg.Blob.Container)
	if len(cfg.Domains) > 0 {
		set("MESSAGEHUB_DOMAINS", domainsSetting(cfg.Domains))
	}
	r.outputs = []output{
		{"settings", "array", settings},
		{"serviceBusName", "string", r.bus.name},
		{"fifoQueue", "string", cfg.ServiceBus.FIFO},
		{"plainQueue", "string", cfg.ServiceBus.Plain},
		{"hubIdentityName", "string", hub.name},
		{"hubIdentityId", "string", resourceID{hub}},
		{"hubClientId", "string", runtime{hub, "clientId"}},
		{"hubPrincipalId", "string", runtime{hub, "principalId"}},
		{"scalerIdentityName", "string", r.findIdentity(deployment.Scaler).name},
		{"scalerIdentityId", "string", resourceID{r.findIdentity(deployment.Scaler)}},
		{"scalerClientId", "string", runtime{r.findIdentity(deployment.Scaler), "clientId"}},
	}
}

// domainsSetting returns the setting domains in JSON.
func domainsSetting(domains config.Domains) string {
	type entry struct {
		Name    string `json:"name"`
		Group   string `json:"group,omitempty"`
		Content string `json:"content,omitempty"`
		Request string `json:"queue,omitempty"`
		Reply   string `json:"reply-queue,omitempty"`
		Dequeue string `json:"dequeue-queue,omitempty"`
		Ingest  string `json:"ingest-queue,omitempty"`
	}
	entries := make([]entry, len(domains))
	for i, d := range domains {
		entries[i] = entry{d.Name.String(), d.Group.String(), string(d.Content), d.Queues.Request, d.Queues.Reply, d.Queues.Dequeue, d.Ingest}
	}
	list, err := json.Marshal(entries)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return string(list)
}
