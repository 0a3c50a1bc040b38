// Package client connects adapters to Azure Cosmos DB, or to any service that azcosmos can use. The
// documents are defined by the adapters.
//
// # Calls
//
// An adapter creates one [Client] of a [Database], and for each call of its ports a [Call]. All
// requests of the call share one budget of retries, so that the time of a call is limited however
// many documents are involved. A request is sent again after a temporary failure or an unknown outcome:
// no reply, 408, 410, 429, 449, 5xx. azcosmos itself resends no write that may have been applied.
//
// # Writes
//
// Every write must be conditional: a creation, a replacement or deletion with an etag, or a patch
// with a condition. So a write whose reply was lost can be sent again. A refusal (404, 409 or 412, see
// [IsRefused]) is ambiguous: an earlier attempt may have applied the write. So every document contains
// the id of its last write ([Client.NewID]), and after a refusal the caller reads the document back and
// compares the ids. If the document has the id of another write, the caller returns [ErrStale] from the
// function that [Call.Retry] runs, and Retry calls the function again, which begins with fresh reads.
//
// # Reads
//
// Plain reads may be stale, independently in each partition; see [Database.ReadsMayBeStale]. If a
// document to which another document refers is not found, the error is [ErrNotYetVisible]: a stale read
// at first, damage if it repeats. A write acts on the current document, so a patch that changes
// nothing is a read that is not stale. An account with several write regions is refused, because
// conditional writes are not safe on it.
//
// # Failures
//
// Each error has a domain.Kind, by which the caller of a port decides. The status of a
// reply is interpreted in one place, [Failure]:
//
//	reply                            kind         sent again
//	none, 408, 500, 502, 503, 504    Unavailable  yes; a write may have been applied
//	410                              Unavailable  yes
//	429, 449                         Busy         yes, after the time that Cosmos requests
//	404 of a stale replica           Unavailable  yes
//	403 while writes change region   Unavailable  yes
//	404                              NotFound     no
//	404 of a container               Unavailable  no
//	409, 412                         Conflict     no; read back
//	403 of a full partition          Unavailable  no; see [ErrPartitionFull]
//	401, 403                         Unavailable  no
//	500 of a damaged file            Damaged      no; embedded engine only
//	none: several write regions      Unavailable  no; the request was not sent
//	others                           Unknown      no
//
// When the budget is used up, a write that may have been applied fails with Uncertain: the caller repeats
// the whole call with the same ids. [Call.Outcome] has the same effect for a call of several writes.
// After a failure, the results of earlier writes of the call remain; the adapter defines what they
// mean and how they are repaired.
//
// # Containers
//
// An adapter describes its containers by a list of [ContainerSpec]. [Client.Provision]
// creates them and corrects properties in place where possible. [Client.CheckContainers] reads
// their properties before a node serves, and [Client.ContainersFault] every few minutes
// after that, because no reply would say that an index path is missing or that a default
// TTL deletes documents.
//
// # Formats
//
// Nodes of two versions work on one store while a deployment is upgraded. A type that embeds
// [Document] retains the members that it does not name. Decoding a document with an unknown format
// number fails with NewerFormat, and no [NewPatch] applies to it.
package client
