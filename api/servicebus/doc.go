// Package servicebus is the Service Bus edge of the message hub: it receives the events of
// domains, requests content from them and notifies them of what arrived, in the messages of
// package contract. It decides nothing about events or bundles. Whether the bus is Azure's or
// the one embedded in a node makes no difference here.
//
//	ingest               domains announce events, and the hub stores them
//	contentrequest       the hub asks a domain for the content of a bundle
//	Notices              the hub notifies a domain that an actor holds a bundle
//	internal/busclient   connections, senders and errors, for all of these
//	internal/receiver    the loop that receives messages of any kind and has them stored
//	domainclient         the other end: what a domain written in Go imports
//	embedded             a bus for development and tests
//
// Faults of the client, azservicebus v1.11, shape the code. Each package says how it
// meets those that concern it:
//
//   - Asked for more than one message at a time, it may return those of a session in
//     the wrong order. So all receivers ask for one.
//   - A property of an unexpected type makes it panic. So receiving is guarded.
//   - Concurrent calls on a lost link each open it again, and it forgets every link except one.
//     So a receiver settles and renews one message at a time, and one sender at a time opens a
//     link.
//   - A client that never retries spins while it cannot renew its tokens. So clients
//     have [ClientRetries].
package servicebus
