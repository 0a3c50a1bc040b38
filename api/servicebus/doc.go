// Package servicebus and its subpackages connect the message hub to domains over Service Bus.
// They receive events from the domains, request content, and notify a domain when an actor has
// confirmed a bundle. Package contract defines the messages. The rules for events and bundles are
// in package domain. All packages work with Service Bus on Azure and with the embedded bus.
//
//	ingest               domains announce events, and the hub stores them
//	contentrequest       the hub requests the content of a bundle from a domain
//	Notices              the hub notifies a domain that an actor has confirmed a bundle
//	internal/busclient   connections, senders and errors, for all of these
//	internal/receiver    the loop that receives messages and passes them to a handler that stores them
//	domainclient         the client for domains that are written in Go
//	embedded             a bus for development and tests
//
// The code works around these faults of the client, azservicebus v1.11:
//
//   - A receive call for several messages may return the messages of a session in the wrong
//     order. So each receive call requests one message.
//   - The client panics on a property of an unexpected type. So panics are recovered.
//   - Concurrent calls on a lost link each open a new link, and the client loses track of all
//     new links except one. So a receiver settles and renews one message at a time, and only
//     one sender at a time opens a link.
//   - A client that never retries spins while it cannot renew its tokens. So clients use
//     [ClientRetries].
package servicebus
