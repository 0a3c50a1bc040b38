package cosmos

import "github.com/messagehub/messagehub/cosmos/client"

// These are the names of the hub's containers.
const (
	catalogContainer = "catalog"
	cabinetContainer = "cabinet"
	bundlesContainer = "bundles"
)

// Containers returns the specifications of the hub's containers.
func Containers() []client.ContainerSpec {
	const (
		name, label = 64, 128 // lengths of the longest id or origin, and of the longest content type
		catalogKey  = name + len("|") + name
		cabinetKey  = catalogKey + len("|") + label
	)
	all := []client.ContainerSpec{
		{
			Name: catalogContainer, Holds: "which events each recipient received, and where its next events are stored",
			PartitionKey: "/partitionKey", KeyBytes: catalogKey, Throughput: 4000,
			Index: []client.IndexPath{
				{Path: "/contentType/?", Use: "a Peek reads every entry of a recipient instead of one"},
				{Path: "/ordinal/?", Use: "Cosmos refuses the query of a Peek that orders by it"},
			},
		},
		{
			Name: cabinetContainer, Holds: "the events, in drawers",
			PartitionKey: "/partitionKey", KeyBytes: cabinetKey, Throughput: 4000,
			Index: []client.IndexPath{
				{Path: "/ordinal/?", Use: "Cosmos refuses the queries of a Peek and of the check that order by it"},
				{Path: "/until/?", Use: "Cosmos refuses the query of a Peek that orders by it"},
			},
		},
		{
			Name: bundlesContainer, Holds: "which events were dequeued, the bundles, and notices to domains",
			PartitionKey: "/recipient", KeyBytes: name, Throughput: 4000, Expires: true,
			Index: []client.IndexPath{
				{Path: "/expires/?", Use: "each sweep reads every bundle that is kept", IsOptional: true},
				{Path: "/kind/?", Use: "the relay of notices and the check read every bundle that is kept"},
			},
		},
	}
	for i := range all {
		all[i].WiderIndex, all[i].Remedy = costOfWiderIndex, remedy
	}
	return all
}

// costOfWiderIndex describes the cost of a Save with the default indexing policy, which indexes all paths.
// TestCheckContainers_NamesThePriceOfAWiderIndex measures this cost.
const costOfWiderIndex = "a Save costs up to 1.3 times as much"

// remedy is the advice for a container that cannot be corrected in place.
const remedy = "set cosmos.database to a new name, or delete all three containers with what they hold, and run messagehub provision"
