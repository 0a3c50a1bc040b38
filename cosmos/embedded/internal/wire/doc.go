// Package wire is the REST interface of the engine: it reads requests as the
// azcosmos client sends them, calls package engine, and writes responses as
// Cosmos DB does.
//
// The package only translates: it decides status codes, substatus codes, headers and error bodies,
// and package engine makes all decisions about documents.
//
// A request for an unsupported feature is refused with a status and a text that name the
// feature. A request is also refused for a header that changes the meaning of the response:
// refusedHeaders lists these headers with the reasons. All other unknown headers are ignored.
//
// A path has names, or the resource ids that the engine sends as _self. If a name of a database has
// the form of a resource id, the name takes precedence. A signature covers the link by names, or the
// lower-case resource id of the last resource. Every response about a resource states the resource
// id and the names of its parent, by which clients store session tokens.
package wire
