package cosmos

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A drawer holds up to 10,000 events of a cabinet. They are in pages, in the partition whose key is the
// drawer's id.
type drawer struct {
	ID            string          `json:"id"`
	PartitionKey  string          `json:"partitionKey"`
	Ordinal       int             `json:"ordinal"` // consecutive in the cabinet from 1, never reused
	FirstSequence domain.Sequence `json:"firstSequence"`
	Count         int             `json:"count"`
	Weight        domain.Weight   `json:"weight"` // an estimate of the weight of its events, too high after a rollback
	Sealed        bool            `json:"sealed"`
	Position      int             `json:"position"`  // hint: number of acknowledged slots
	WriteID       string          `json:"operation"` // id of the intent that counted last
	client.Document
}

// A catalogEntry is a hint: the drawer has unacknowledged events from NextSequence on. Its id is the
// drawer's, so writing it twice is harmless.
type catalogEntry struct {
	ID           string          `json:"id"`
	PartitionKey string          `json:"partitionKey"`
	ContentType  string          `json:"contentType"`
	Ordinal      int             `json:"ordinal"`
	NextSequence domain.Sequence `json:"nextSequence"`
	ETag         azcore.ETag     `json:"_etag,omitempty"`
	client.Document

	exists bool // most likely, because its drawer was filled before
}

// statePatch returns the patch that sets the members of the stored entry to those of e.
func (e *catalogEntry) statePatch() azcosmos.PatchOperations {
	ops := client.NewPatch(entryDocument)
	ops.AppendSet("/nextSequence", e.NextSequence)
	return ops
}

// replacementFor returns e as it must be written to replace old.
func (e catalogEntry) replacementFor(old *catalogEntry) *catalogEntry {
	e.Document = old.Document
	return &e
}
