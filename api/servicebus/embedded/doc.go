// Package embedded is a Service Bus namespace inside the process. The azservicebus client uses
// it as it uses Azure, and an accepted message is on disk.
//
//	namespace, err := embedded.Open(embedded.Options{Dir: dir, CreateOnUse: true})
//	client, err := azservicebus.NewClientFromConnectionString(namespace.ConnectionString(""), &azservicebus.ClientOptions{
//		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
//			return namespace.Dial(ctx)
//		},
//	})
//
// Serve serves the same namespace on a port to any client of Service Bus: AMQP 1.0 with or
// without TLS, AMQP over WebSockets, and management of entities over HTTP, all on one port.
//
// It has layers, each of which uses only those below it:
//
//	internal/atom         management over HTTP: entities, rules, counts
//	internal/node         Service Bus on AMQP: tokens, requests, settlement
//	internal/bus          queues, topics, locks, sessions, dead letters
//	internal/amqp/server  sessions, links, credit, deliveries
//	internal/amqp         values, frames and messages, to and from bytes
//	internal/sas          shared access signatures
//
// What it promises:
//
//   - An accepted message and a confirmed settlement survive the death of the process, if
//     Options.Dir is set.
//   - Messages of a session are delivered in the order of their sequence numbers, to one
//     receiver at a time. A batch is stored completely or has no effect.
//   - A client gets the conditions and status codes of Service Bus, by which it decides whether
//     to retry.
//   - Input is bounded: frames, nesting, channels and links, and the memory for a client that
//     does not read. Options limit the total of all clients.
//   - A connection must present a valid token within a timeout, and has low limits until then.
//     A quarter of the connections is reserved for Dial.
//   - Temporary failures of accept, such as a shortage of descriptors, are retried.
//   - The AMQP client of azservicebus can decode every accepted message. A message that it
//     cannot decode, because it has a char or a decimal, is rejected.
//   - A message over the limit is rejected with amqp:link:message-size-exceeded, then its link
//     is detached.
//
// The tests that ship with the clients measure its conformance: make conformance-servicebus. It
// does not support transactions, partitioned entities, tokens of Microsoft Entra ID (unless all
// are trusted) and deletion of idle entities. In one respect it does more than Service Bus: a
// dead letter can be received by its sequence number without being deferred.
//
// What a failure leaves behind: when a commit fails (a full or broken disk), no message is
// accepted or settled until the namespace is opened again. Opening finds all confirmed
// operations.
package embedded
