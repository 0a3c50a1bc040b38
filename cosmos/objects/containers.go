package objects

import "github.com/messagehub/messagehub/cosmos/client"

const objectsContainer = "objects"

// Containers returns the containers of objects.
func Containers() []client.ContainerSpec {
	return []client.ContainerSpec{{
		Name: objectsContainer, Holds: "what stores report about their objects",
		PartitionKey: "/partitionKey", KeyBytes: 255 + len("shard|999|"), Throughput: 4000,
		Index: []client.IndexPath{
			{Path: "/object/?", Use: "finding the spilled rows of an object reads those of all objects"},
			{Path: "/order/?", Use: "the history of an object has no order"},
			{Path: "/version/?", Use: "a late event reads the spilled rows of all versions"},
			{Path: "/live/?", Use: "a list of current objects reads the others, too"},
		},
		WiderIndex: "an event costs up to twice as much",
		Remedy:     "delete the container objects with what it holds, and run messagehub provision",
	}}
}
