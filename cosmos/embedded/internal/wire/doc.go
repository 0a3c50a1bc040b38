// Package wire is the REST surface of the engine: it reads requests as the
// azcosmos client sends them, calls package engine, and writes answers as
// Cosmos DB does.
//
// It only translates: it decides status codes, substatus codes, headers and error bodies, and
// package engine decides everything about documents.
//
// A request for an unsupported feature is refused with a status and a text that name the
// feature. So is a header that changes what the answer means: refusedHeaders lists those, with
// the reasons. All other unknown headers are ignored.
//
// A path has names, or the resource ids that the engine sends as _self; a database that has the
// name is found first. A signature covers the link by names, or the lower-case resource id of
// the last resource. Every answer about a resource names its parent, by its resource id and by
// names: clients keep session tokens by these.
package wire
