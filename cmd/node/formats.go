package node

import (
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
)

// Formats returns the highest format of each kind of stored document that a node of this
// version knows: by area, and by the name of the kind.
func Formats() map[string]map[string]int {
	formats := make(map[string]map[string]int)
	for area, kinds := range map[string][]client.DocumentKind{
		"events": cosmos.DocumentKinds(), "push": pushstore.DocumentKinds(), "objects": objectstore.DocumentKinds(),
	} {
		formats[area] = make(map[string]int, len(kinds))
		for _, k := range kinds {
			formats[area][k.Name] = k.Format
		}
	}
	return formats
}
