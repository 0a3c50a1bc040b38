// Package embedded is a Service Bus namespace inside the process. The azservicebus client connects
// to it as to Azure. With a folder, every accepted message is on disk.
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
// The package consists of layers. Each layer uses only lower ones:
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
//   - A client receives the conditions and status codes of Service Bus, which determine whether
//     the client retries.
//   - Input is bounded: frames, nesting, channels and links, and the memory for a client that
//     does not read. Options limit the total of all clients.
//   - A connection must present a valid token within a timeout, and has low limits before it
//     does. By default, a quarter of the connections is reserved for Dial.
//   - Temporary failures of accept, such as a shortage of descriptors, are retried.
//   - The AMQP client of azservicebus can decode every accepted message. A message with a char or
//     a decimal is rejected, because this client cannot decode it.
//   - A message over the limit is rejected with amqp:link:message-size-exceeded, then its link
//     is detached.
//
// The tests that ship with the clients measure the conformance: make conformance-servicebus. The
// namespace does not support transactions, partitioned entities, tokens of Microsoft Entra ID
// (unless all tokens are trusted) and deletion of idle entities. Unlike in Service Bus, a dead
// letter can be received by its sequence number without being deferred.
//
// After a failed commit (a full or broken disk), no message is accepted or settled until the
// namespace is opened again. The reopened namespace has all confirmed operations.
package embedded
