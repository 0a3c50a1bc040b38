// Package embedded is a Service Bus namespace inside the process: the
// azservicebus client talks to it as it talks to Azure, and what is accepted is
// on disk.
//
//	namespace, err := embedded.Open(embedded.Options{Dir: dir, CreateOnUse: true})
//	client, err := azservicebus.NewClientFromConnectionString(namespace.ConnectionString(""), &azservicebus.ClientOptions{
//		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
//			return namespace.Dial(ctx)
//		},
//	})
//
// Serve offers the same namespace on a port, to any client of Service Bus: AMQP
// 1.0 with or without TLS, AMQP over WebSockets, and the management of entities
// over HTTP, all on one port.
//
// It is made of layers, each of which knows only those below it:
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
//   - A message that was accepted survives the death of the process, if
//     Options.Dir is set, and so does that it was settled.
//   - Messages of a session come in the order of their sequence numbers, to
//     one receiver at a time. A batch is stored as a whole or not at all.
//   - A client gets the conditions and status codes that Service Bus sends, by
//     which it decides whether to try again.
//   - What a client sends is bounded: frames, nesting, channels, links, and
//     the memory of a client that does not read. Options limit what
//     all clients use together.
//   - A connection must present a valid token in time, and until then it has low
//     limits. A quarter of the connections is reserved for Dial.
//   - Temporary failures of accept, such as a lack of descriptors, are retried.
//   - A message that is accepted can be decoded by the AMQP client of azservicebus. Of
//     what that cannot decode, such as a decimal among the properties, its sender is told.
//
// How near it comes is measured by the tests that ship with the clients: make
// conformance-servicebus. It has no transactions, no partitioned entities, no
// tokens of Microsoft Entra ID (unless they are trusted unread), and deletes no
// idle entities. It has more in one place: a dead letter can be received by its
// sequence number, also when it is not deferred.
//
// What a failure leaves behind: when a commit fails (a full or broken disk),
// nothing is accepted or settled any more until the namespace is opened again;
// opening finds all that was answered.
package embedded
