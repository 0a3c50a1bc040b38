// Package servicebus connects the message hub to domains over Service Bus: it receives their
// events, requests content from them, and notifies them when an actor has confirmed it. Package
// contract has the messages. The packages decide nothing about events or bundles. It does not
// matter to them whether the bus is Azure's or the embedded one.
//
//	ingest               domains announce events, and the hub stores them
//	contentrequest       the hub asks a domain for the content of a bundle
//	Notices              the hub notifies a domain that an actor has confirmed a bundle
//	internal/busclient   connections, senders and errors, for all of these
//	internal/receiver    the loop that receives messages and passes them to a handler that stores them
//	domainclient         the client for domains that are written in Go
//	embedded             a bus for development and tests
//
// The code works around these faults of the client, azservicebus v1.11:
//
//   - Asked for more than one message at a time, it may return those of a session in
//     the wrong order. So all receivers ask for one.
//   - A property of an unexpected type makes it panic. So panics are recovered.
//   - Concurrent calls on a lost link each open it again, and it forgets every link except one.
//     So a receiver settles and renews one message at a time, and one sender at a time opens a
//     link.
//   - A client that never retries spins while it cannot renew its tokens. So clients
//     have [ClientRetries].
package servicebus
