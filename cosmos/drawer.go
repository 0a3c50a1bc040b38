package cosmos

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A drawer holds up to 10,000 events of a cabinet; they lie in pages, in the
// partition that has the drawer's id as its key.
type drawer struct {
	ID            string          `json:"id"`
	PartitionKey  string          `json:"partitionKey"`
	Ordinal       int             `json:"ordinal"` // dense in the cabinet from 1, never reused
	FirstSequence domain.Sequence `json:"firstSequence"`
	Count         int             `json:"count"`
	Weight        domain.Weight   `json:"weight"` // of its events; an estimate, too high after a rollback
	Sealed        bool            `json:"sealed"`
	Position      int             `json:"position"`  // hint: slots acknowledged
	WriteID       string          `json:"operation"` // the intent that last counted
	client.Document
}

// A catalogEntry is a hint: the drawer has unacknowledged events from NextSequence on.
// Its id is the drawer's, so that writing it twice is harmless.
type catalogEntry struct {
	ID           string          `json:"id"`
	PartitionKey string          `json:"partitionKey"`
	ContentType  string          `json:"contentType"`
	Ordinal      int             `json:"ordinal"`
	NextSequence domain.Sequence `json:"nextSequence"`
	ETag         azcore.ETag     `json:"_etag,omitempty"`
	client.Document

	exists bool // most likely, because its drawer has been filled before
}

// statePatch returns the patch that makes the stored entry of the same drawer state what e states.
func (e *catalogEntry) statePatch() azcosmos.PatchOperations {
	ops := client.NewPatch(entryDocument)
	ops.AppendSet("/nextSequence", e.NextSequence)
	return ops
}

// replacementFor returns e as it is written in place of old.
func (e catalogEntry) replacementFor(old *catalogEntry) *catalogEntry {
	e.Document = old.Document
	return &e
}
