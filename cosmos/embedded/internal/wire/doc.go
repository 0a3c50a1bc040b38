// Package wire is the REST surface of the engine: it reads requests as the
// azcosmos client sends them, calls package engine, and writes answers as
// Cosmos DB does.
//
// It only translates. Status codes, sub-status codes, headers and error
// bodies are its own; every rule about documents is the engine's.
//
// A request that asks for something the engine does not have is refused with
// a status and a text that say so. A header nobody here knows is refused too,
// because it may change the meaning of the request.
package wire
