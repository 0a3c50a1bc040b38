package node

import (
	messages "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	documents "github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/level"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	rights "github.com/messagehub/messagehub/cosmos/probe"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	cosmossurvey "github.com/messagehub/messagehub/cosmos/survey"
	"github.com/messagehub/messagehub/repository/content"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

// HighestLevel returns the highest store level that this version supports; see
// package level.
func HighestLevel() int { return levels.Highest() }

// FileFormats returns the formats that this version reads and writes: of the
// identity file, and of each store's file.
func FileFormats() map[string]int {
	return map[string]int{
		datafolder.IdentityFile: datafolder.IdentityFormat,
		cosmosFolder:            documents.FileFormat,
		busFolder:               messages.FileFormat,
		contentFolder:           content.FileFormat,
		exchangeFolder:          blobs.FileFormat,
	}
}

// Formats returns the highest format of each kind of stored document that this
// version supports. The keys are the area and the name of the kind.
func Formats() map[string]map[string]int {
	formats := make(map[string]map[string]int)
	for area, kinds := range map[string][]client.DocumentKind{
		"events": cosmos.DocumentKinds(), "push": pushstore.DocumentKinds(), "objects": objectstore.DocumentKinds(),
		"level": {level.Document}, "doctor": {rights.Document}, "survey": cosmossurvey.DocumentKinds(),
	} {
		formats[area] = make(map[string]int, len(kinds))
		for _, k := range kinds {
			formats[area][k.Name] = k.Format
		}
	}
	return formats
}
