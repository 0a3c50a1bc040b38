package azuretemplate

import (
	"strings"

	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/client"
)

const cosmosAPI = "2024-11-15"

// addCosmos adds the account, the database and its containers, and the role of the hub. The account
// accepts no keys.
func (r *resources) addCosmos() {
	name := r.accountParam("cosmosAccountName", "Name of the Cosmos account", r.names.cosmos, text{paramRef("prefix"), "-", unique()})
	consistency := r.param(param{
		name: "cosmosConsistency", kind: "string", description: "Consistency of the Cosmos account. With Strong or BoundedStaleness, what a region loses is bounded",
		value: "Session", allowed: array{"Session", "BoundedStaleness", "Strong"},
	})
	r.cosmos = r.add(&resource{
		symbol: "cosmos", kind: "Microsoft.DocumentDB/databaseAccounts", api: cosmosAPI, name: name,
		body: object{
			{"location", r.location},
			{"kind", "GlobalDocumentDB"},
			{"properties", object{
				{"databaseAccountOfferType", "Standard"},
				{"consistencyPolicy", object{{"defaultConsistencyLevel", consistency}}},
				{"locations", array{object{{"locationName", r.location}, {"failoverPriority", 0}, {"isZoneRedundant", r.zones}}}},
				{"enableMultipleWriteLocations", false},
				{"enableAutomaticFailover", true},
				{"disableLocalAuth", true},
				{"disableKeyBasedMetadataWriteAccess", true},
				{"minimalTlsVersion", "Tls12"},
				{"publicNetworkAccess", r.publicAccess()},
				{"backupPolicy", object{{"type", "Continuous"}, {"continuousModeProperties", object{{"tier", "Continuous7Days"}}}}},
			}},
		},
	})
	database := r.add(&resource{
		symbol: "database", kind: "Microsoft.DocumentDB/databaseAccounts/sqlDatabases", api: cosmosAPI, parent: r.cosmos, name: r.table.Database,
		body: object{{"properties", object{{"resource", object{{"id", r.table.Database}}}}}},
	})
	r.scopes[deployment.Scope{Kind: deployment.DatabaseScope, Name: r.table.Database}] = database
	for i := range r.table.Containers {
		r.addContainer(database, &r.table.Containers[i])
	}
	r.addPrivateEndpoint("cosmos", "Sql", r.cosmos)
}

func (r *resources) addContainer(database *resource, c *client.ContainerSpec) {
	included := array{}
	for _, path := range c.IndexPaths() {
		included = append(included, object{{"path", path}})
	}
	properties := object{
		{"id", c.Name},
		{"partitionKey", object{{"kind", "Hash"}, {"version", 2}, {"paths", array{c.PartitionKey}}}},
		{"indexingPolicy", object{
			{"automatic", true},
			{"indexingMode", "consistent"},
			{"includedPaths", included},
			{"excludedPaths", array{object{{"path", "/*"}}}},
		}},
	}
	if c.Expires {
		properties = append(properties, member{"defaultTtl", -1})
	}
	throughput := r.param(param{
		name: c.Name + "MaxThroughput", kind: "int", description: "Autoscale maximum of the container " + c.Name + " in RU/s; deploying again sets it back to this", value: int(c.Throughput),
	})
	r.add(&resource{
		comment: c.Holds,
		symbol:  "container" + title(c.Name), kind: "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers", api: cosmosAPI, parent: database, name: c.Name,
		body: object{{"properties", object{
			{"resource", properties},
			{"options", object{{"autoscaleSettings", object{{"maxThroughput", throughput}}}}},
		}}},
	})
}

// title makes a name one that can stand after another one in a symbol.
func title(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(c rune) bool { return !isWord(c) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func isWord(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }
