// Package node assembles a hub from its parts: the store, the bus, the use cases and
// the HTTP API. The command, benchmarks and tests use it, with different values of
// [config.Config] and [Options].
//
// Open starts the parts, and Run stops them in this order:
//
//	Open    listener ─▶ store, content, exchange ─▶ push ─▶ bus ─▶ hub ─▶ HTTP server
//	Run     serves until its context ends, or a part fails; then
//	        /readyz answers 503 ─▶ no more messages are received from the bus, and
//	        those that were received are stored; no further calls to receivers
//	        begin, and those under way are completed; for drain-delay requests are
//	        answered as before, so that load balancers notice ─▶ the server completes
//	        the requests under way, for at most Options.Grace ─▶ hints and notices
//	        stop, the ports for domains close ─▶ the bus closes ─▶ the store closes
//
// A process that dies or is killed at any of these points loses nothing: data is
// stored before a request is answered, and the bus delivers messages again that were
// not stored. The order only ensures that requests under way are answered.
//
// # The data folder
//
// Without settings of Azure the node runs embedded engines in a folder, and uses the
// same clients for them as for Azure. A folder belongs to one process, which holds the
// lock in it:
//
//	<data>/lock         empty, but locked by the process
//	<data>/identity     the id of the folder, which is also in its stores, and their names
//	<data>/cosmos       documents: heads, gates, drawers, pages, bundles, notices
//	<data>/content      payloads, and contents of domains
//	<data>/bus          queues, on an embedded Service Bus
//	<data>/exchange     what hub and domains exchange, on an embedded storage account
//	<data>/admin.token  the operators' token, if the configuration has none
//	<data>/push.key     seals the secrets of subscriptions, if the configuration has no key
//	<data>/frozen       after restore --freeze: queues are frozen until an operator thaws them
//	<data>/.restore     a restore that was not completed: no node starts
//
// Files have the mode 0600 and folders 0700, and links in the folder are not followed
// (private.go). The token is kept in the folder even if all data is on Azure or in
// memory (admin_token.go).
//
// The embedded bus and the embedded storage account have separate ports, at which
// domains use them with any client of Service Bus and of Blob Storage.
//
// Each of the three may be on Azure instead: cosmos.endpoint, servicebus.namespace,
// blob.endpoint. As long as content stays in the folder, one Cosmos account belongs
// to one node; with all three on Azure there may be any number of nodes. Provision
// creates and corrects what package deployment lists for Azure.
//
// Backup and the route /v1/admin/backup write the folder to an archive, and Restore restores it
// from one; package backup documents the archive.
//
// # Receivers
//
// push.go builds the parts that receive events and subscriptions and call receivers; they use the
// containers streams and cursors. A node whose account lacks them runs without it. A subscription has one
// secret: one of Standard Webhooks (whsec_, whsk_) signs calls by that standard, and any other text is
// the HMAC key of the Authorization header.
//
// With broker.fail-safe off or worker, a node does not take over the work of a dead node by itself; see
// package delivery. The worker (broker_failsafe.go) re-triggers jobs of the broker that wait
// because of that. It is a client of the hub at broker.retrigger-url, and stops when the calls to
// receivers stop.
//
// # Calls to others
//
// Every connection that a node makes is opened in network.go. Options.Dial and
// Options.LookUp replace that, so that a simulation receives all calls. A test
// reports code in the packages of the node that opens connections elsewhere.
//
// # Versions
//
// A store has a level, which states the formats that nodes may write; see cosmos/level. A node whose
// version does not know the level does not open. If the level rises above its own while it runs, it
// stops at once. level.go has the known levels, and formats.go the formats.
//
// # Readiness and limits
//
// Checks of the store, its containers and the disks of the folder run in the background
// (readiness.go), and /readyz answers with their latest results. The file descriptors of
// the process are divided among the listeners, with a part for files (connections.go).
package node
