// Package node makes one running hub of its parts: the store, the use cases and
// the HTTP edge. It is the same for the command, for benchmarks and for tests;
// what differs is a [config.Config] and a few [Options].
//
// Open builds from the inside out, and Run stops from the outside in:
//
//	Open    listener ─▶ store ─▶ hub ─▶ HTTP server
//	Run     serves until its context ends, or a part fails; then
//	        /readyz says no ─▶ the server finishes what it has begun, for at
//	        most Options.Grace ─▶ hints are written no more ─▶ the store closes
//
// A process that dies at any point of this, or is killed, loses nothing: what
// was answered was stored before. The order only sees to it that requests under
// way get their answers.
//
// # The store
//
// Without cosmos.endpoint the node runs the engine of package cosmos/embedded
// in a folder, and talks to it through the same client as to Azure. One folder
// belongs to one process, which holds the lock in it:
//
//	<data>/lock      names no process, but one holds it
//	<data>/cosmos    documents: heads, gates, drawers, pages, bundles
//	<data>/content   payloads
//
// With cosmos.endpoint the documents are there, and the payloads stay in
// <data>/content: until payloads can be kept in Azure too, one account belongs
// to one node.
package node
