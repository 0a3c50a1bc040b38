package azuretemplate

import (
	"strings"

	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/client"
)

const cosmosAPI = "2024-11-15"

// addCosmos adds the Cosmos account, its database and containers, and the hub's
// role. The account accepts no keys.
func (r *resources) addCosmos() {
	name := r.accountParam("cosmosAccountName", "Name of the Cosmos account", r.names.cosmos, text{paramRef("prefix"), "-", unique()})
	consistency := r.addParam(param{
		name: "cosmosConsistency", kind: "string", description: "Consistency of the Cosmos account. With Strong or BoundedStaleness, what a region loses is bounded",
		value: "Session", allowed: array{"Session", "BoundedStaleness", "Strong"},
	})
	r.cosmos = r.addResource(&templateResource{
		symbol: "cosmos", kind: "Microsoft.DocumentDB/databaseAccounts", api: cosmosAPI, name: name,
		body: orderedObject{
			{"location", r.location},
			{"kind", "GlobalDocumentDB"},
			{"properties", orderedObject{
				{"databaseAccountOfferType", "Standard"},
				{"consistencyPolicy", orderedObject{{"defaultConsistencyLevel", consistency}}},
				{"locations", array{orderedObject{{"locationName", r.location}, {"failoverPriority", 0}, {"isZoneRedundant", r.zones}}}},
				{"enableMultipleWriteLocations", false},
				{"enableAutomaticFailover", true},
				{"disableLocalAuth", true},
				{"disableKeyBasedMetadataWriteAccess", true},
				{"minimalTlsVersion", "Tls12"},
				{"publicNetworkAccess", r.publicAccess()},
				{"backupPolicy", orderedObject{{"type", "Continuous"}, {"continuousModeProperties", orderedObject{{"tier", "Continuous7Days"}}}}},
			}},
		},
	})
	database := r.addResource(&templateResource{
		symbol: "database", kind: "Microsoft.DocumentDB/databaseAccounts/sqlDatabases", api: cosmosAPI, parent: r.cosmos, name: r.table.Database,
		body: orderedObject{{"properties", orderedObject{{"resource", orderedObject{{"id", r.table.Database}}}}}},
	})
	r.scopes[deployment.Scope{Kind: deployment.DatabaseScope, Name: r.table.Database}] = database
	for i := range r.table.Containers {
		r.addContainer(database, &r.table.Containers[i])
	}
	r.addPrivateEndpoint("cosmos", "Sql", r.cosmos)
}

func (r *resources) addContainer(database *templateResource, c *client.ContainerSpec) {
	included := array{}
	for _, path := range c.IndexPaths() {
		included = append(included, orderedObject{{"path", path}})
	}
	properties := orderedObject{
		{"id", c.Name},
		{"partitionKey", orderedObject{{"kind", "Hash"}, {"version", 2}, {"paths", array{c.PartitionKey}}}},
		{"indexingPolicy", orderedObject{
			{"automatic", true},
			{"indexingMode", "consistent"},
			{"includedPaths", included},
			{"excludedPaths", array{orderedObject{{"path", "/*"}}}},
		}},
	}
	if c.Expires {
		properties = append(properties, member{"defaultTtl", -1})
	}
	throughput := r.addParam(param{
		name: c.Name + "MaxThroughput", kind: "int", description: "Autoscale maximum of the container " + c.Name + " in RU/s; deploying again sets it back to this", value: int(c.Throughput),
	})
	r.addResource(&templateResource{
		comment: c.Holds,
		symbol:  "container" + capitalizeName(c.Name), kind: "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers", api: cosmosAPI, parent: database, name: c.Name,
		body: orderedObject{{"properties", orderedObject{
			{"resource", properties},
			{"options", orderedObject{{"autoscaleSettings", orderedObject{{"maxThroughput", throughput}}}}},
		}}},
	})
}

// capitalizeName capitalizes each word of a name, for use at the end of a
// symbol.
func capitalizeName(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(c rune) bool { return !isWord(c) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func isWord(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }
