package push

import "github.com/messagehub/messagehub/cosmos/client"

const (
	streamsContainer = "streams"
	cursorsContainer = "cursors"
)

// Containers returns the specifications of the containers in which this package stores documents.
func Containers() []client.ContainerSpec {
	const (
		name   = 64 // limit for the length of the name of a topic, a channel or an actor
		stream = len("dequeued|") + name + len("|9999999")
		cursor = 3*name + len("||")
	)
	all := []client.ContainerSpec{
		{
			Name: streamsContainer, Holds: "the published events, in streams",
			PartitionKey: "/partitionKey", KeyBytes: stream, Throughput: 4000, Expires: true,
		},
		{
			Name: cursorsContainer, Holds: "the position of each receiver, and failed deliveries",
			PartitionKey: "/partitionKey", KeyBytes: cursor, Throughput: 4000, Expires: true,
			Index: []client.IndexPath{
				{Path: "/kind/?", Use: "loading a cursor with retries reads its dead letters, too"},
			},
		},
	}
	for i := range all {
		all[i].WiderIndex = "an append and a settlement cost up to twice as much"
		all[i].Remedy = "delete the containers streams and cursors with what they hold, and run messagehub provision"
	}
	return all
}
