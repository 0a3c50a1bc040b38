package objects

import (
	"slices"
	"strings"

	"github.com/messagehub/messagehub/cosmos/client"
)

const objectsContainer = "objects"

// Containers returns the specification of the container that a Store uses.
func Containers() []client.ContainerSpec {
	return []client.ContainerSpec{{
		Name: objectsContainer, Holds: "the states of objects that stores report",
		PartitionKey: "/partitionKey", KeyBytes: 255 + len("shard|999|"), Throughput: 4000,
		Index:      indexPaths(),
		Expires:    true,
		WiderIndex: "an event costs up to twice as much",
		Remedy:     "delete the container objects with what it holds, and run messagehub provision",
	}}
}

func indexPaths() []client.IndexPath {
	paths := []client.IndexPath{
		{Path: "/object/?", Use: "finding the spilled rows of an object reads those of all objects"},
		{Path: "/order/?", Use: "the history of an object has no order"},
		{Path: "/version/?", Use: "a late event reads the spilled rows of all versions"},
		{Path: "/live/?", Use: "a list of current objects reads the others, too"},
		{Path: "/shards/?", Use: "a list of buckets reads all objects"},
	}
	for _, member := range matchMembers {
		paths = append(paths, client.IndexPath{Path: "/current/" + member + "/?", Use: "a list of objects with one " + member + " reads all objects"})
	}
	slices.SortFunc(paths[len(paths)-len(matchMembers):], func(a, b client.IndexPath) int { return strings.Compare(a.Path, b.Path) })
	return paths
}
