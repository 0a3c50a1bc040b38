// Package wire is the REST surface of the engine: it reads requests as the
// azcosmos client sends them, calls package engine, and writes answers as
// Cosmos DB does.
//
// It only translates: it decides status codes, substatus codes, headers and error bodies, and
// package engine decides everything about documents.
//
// A request for an unsupported feature is refused with a status and a text that name the
// feature. An unknown header is refused, too, because it may change the meaning of the request.
package wire
