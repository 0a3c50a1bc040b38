package cosmos

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A drawer holds up to 10,000 events of a cabinet. The events are in pages, in the partition whose key is
// the id of the drawer.
type drawer struct {
	ID            string          `json:"id"`
	PartitionKey  string          `json:"partitionKey"`
	Ordinal       int             `json:"ordinal"` // counted from 1 in the cabinet, never reused
	FirstSequence domain.Sequence `json:"firstSequence"`
	Count         int             `json:"count"`
	Weight        domain.Weight   `json:"weight"` // estimated weight of the events, too high after a rollback
	Sealed        bool            `json:"sealed"`
	Position      int             `json:"position"`  // hint: number of acknowledged slots
	WriteID       string          `json:"operation"` // id of the intent that last raised the count
	client.Document
}

// A catalogEntry is a hint that a drawer has unacknowledged events, the first with the number
// NextSequence. Entry and drawer have the same id, so writing the entry twice is harmless.
type catalogEntry struct {
	ID           string          `json:"id"`
	PartitionKey string          `json:"partitionKey"`
	ContentType  string          `json:"contentType"`
	Ordinal      int             `json:"ordinal"`
	NextSequence domain.Sequence `json:"nextSequence"`
	ETag         azcore.ETag     `json:"_etag,omitempty"`
	client.Document

	exists bool // whether the entry probably exists, because the drawer had events before
}

// statePatch returns the patch that sets the members of the stored entry to those of e.
func (e *catalogEntry) statePatch() azcosmos.PatchOperations {
	ops := client.NewPatch(entryDocument)
	ops.AppendSet("/nextSequence", e.NextSequence)
	return ops
}

// replacementFor returns a copy of e that can replace old: it has the format and the unknown members of
// old. A member that is added to the type must be copied here, unless every caller sets it.
func (e catalogEntry) replacementFor(old *catalogEntry) *catalogEntry {
	e.Document = old.Document
	return &e
}
