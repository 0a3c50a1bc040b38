// Package node makes one running hub of its parts: the store, the bus, the use cases
// and the HTTP edge. It is the same for the command, for benchmarks and for tests;
// what differs is a [config.Config] and a few [Options].
//
// Open builds from the inside out, and Run stops from the outside in:
//
//	Open    listener ─▶ store, content, exchange ─▶ push ─▶ bus ─▶ hub ─▶ HTTP server
//	Run     serves until its context ends, or a part fails; then
//	        /readyz says no ─▶ nothing more is taken from the bus, and what was
//	        taken is stored; no call to a receiver begins, and those under way are
//	        settled; for drain-delay requests are answered as before, so that load
//	        balancers can follow; the server finishes what it has begun, for at most Options.Grace ─▶ hints are written and notices carried no more,
//	        the doors close ─▶ the bus closes ─▶ the store closes
//
// A process that dies at any point of this, or is killed, loses nothing: what
// was answered was stored before, and what was taken from the bus and is not
// stored comes again. The order only sees to it that requests under way get their
// answers.
//
// # What it keeps, and where
//
// Without settings of Azure the node runs engines of its own in a folder, and talks
// to them through the same clients as to Azure. One folder belongs to one process,
// which holds the lock in it:
//
//	<data>/lock         names no process, but one holds it
//	<data>/identity     the id of the folder, which its stores carry, and their names
//	<data>/cosmos       documents: heads, gates, drawers, pages, bundles, notices
//	<data>/content      payloads, and what domains have made
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
// Domains reach the bus and the shared storage by doors: ports of their own, which any
// client of Service Bus and of Blob Storage can use.
//
// Each of the three may be Azure's instead: cosmos.endpoint, servicebus.namespace,
// blob.endpoint. As long as content stays in the folder, one Cosmos account belongs
// to one node; with all three on Azure there may be any number of nodes. Provision
// creates and corrects what package deployment lists for Azure.
//
// Backup and the route /v1/admin/backup write the folder to an archive, and Restore brings it
// back; package backup says what an archive promises.
//
// # Receivers
//
// push.go builds what receives events and subscriptions and calls receivers, over the containers
// streams and cursors. A node whose account lacks them runs without it. A subscription has one
// secret: one of Standard Webhooks (whsec_, whsk_) signs as these say, and any other text is the
// HMAC key of the Authorization header.
//
// With broker.fail-safe off or worker, a node does not take over what a dead node had by itself; see
// package delivery. The worker (broker_failsafe.go) has jobs of the broker re-triggered that wait
// because of that. It is a client of the hub at broker.retrigger-url, and ends with the calls to
// receivers.
//
// # Calls to others
//
// Every connection that a node makes begins in network.go: Options.Dial and Options.LookUp
// replace it, so that a simulation holds the receivers of all calls. A test reads the
// packages of the node and reports code that dials by itself.
//
// # Versions
//
// A store has a level, which states the formats that nodes may write; see cosmos/level. A node whose
// version does not know the level does not open. If the level rises above its own while it runs, it
// ends at once. level.go has the levels that this version knows, and formats.go the formats.
//
// # Readiness and limits
//
// Checks of the store, its containers and the disks of the folder run in the background
// (readiness.go), and /readyz answers with their last results. The file descriptors of
// the process are divided among the listeners, with a part for files (connections.go).
package node
