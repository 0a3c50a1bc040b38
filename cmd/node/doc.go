// Package node assembles a hub from its parts: the store, the bus, the use cases and
// the HTTP API. The command, benchmarks and tests use it, with different values of
// [config.Config] and [Options].
//
// Open starts the parts, and Run stops them in this order:
//
//	Open    listener ─▶ store, content, exchange ─▶ push ─▶ bus ─▶ hub ─▶ HTTP server
//	Run     serves until its context ends, or a part fails; then
//	        /readyz responds with 503 ─▶ the node receives no more messages from the
//	        bus, and stores those that it has received; it begins no more calls to
//	        receivers, and completes the calls in progress; for drain-delay it serves
//	        requests as before, so that load balancers see the 503 ─▶ the server
//	        completes the requests in progress, for at most Options.Grace ─▶ hints and
//	        notices stop, the ports for domains close ─▶ the bus closes ─▶ the store closes
//
// A process that dies or is killed at any of these points loses nothing: data is stored
// before the response to a request is sent, and the bus delivers again each message that
// was not stored. The order only ensures that requests in progress are completed.
//
// # The data folder
//
// If no service on Azure is configured, the node runs embedded engines in a folder, and
// uses the same clients for them as for Azure. Only one process at a time can use the
// folder, because it locks a file. The folder contains:
//
//	<data>/lock         an empty file that the process locks
//	<data>/identity     the id of the folder, which each store contains too, and the names of the stores
//	<data>/cosmos       documents: heads, gates, drawers, pages, bundles, notices
//	<data>/content      payloads, and contents of domains
//	<data>/bus          queues, on an embedded Service Bus
//	<data>/exchange     content that hub and domains exchange, on an embedded storage account
//	<data>/admin.token  the operators' token, if the configuration has none
//	<data>/push.key     the key that encrypts subscriptions' secrets, if the configuration has none
//	<data>/frozen       after restore --freeze: queues are frozen until an operator thaws them
//	<data>/.restore     an interrupted restore; a node does not start with it
//
// Files have the mode 0600 and folders 0700, and links in the folder are not followed
// (private.go). The node stores the token in the folder even if all data is on Azure or
// in memory (admin_token.go).
//
// The embedded bus and the embedded storage account have separate ports for domains,
// which can use any client of Service Bus and of Blob Storage.
//
// The settings cosmos.endpoint, servicebus.namespace and blob.endpoint move documents,
// messages and content to Azure. While content is in the folder, only one node may use
// the Cosmos account; if everything is on Azure, any number of nodes may run.
// Provision creates and corrects the resources that package deployment lists for Azure.
//
// Backup and the route /v1/admin/backup write the folder to an archive, and Restore
// restores the archive; package backup documents the format.
//
// # Receivers
//
// push.go opens the parts that accept events and subscriptions, and call receivers. They use the
// containers streams and cursors. If the account lacks these containers, the node runs without these
// parts. A subscription has one secret. A secret of Standard Webhooks (whsec_, whsk_) signs calls
// according to that standard; any other secret is the HMAC key of the Authorization header.
//
// If broker.fail-safe is off or worker, a running node does not take over the deliveries of a dead node;
// see package delivery. The worker (broker_failsafe.go) re-triggers the broker's jobs that are therefore
// waiting. It is a client of the hub at broker.retrigger-url, and stops when the calls to receivers stop.
//
// # Outgoing connections
//
// network.go opens every outgoing connection of a node. Options.Dial and Options.LookUp
// replace its functions, so that a simulation receives all calls. A test fails if other code
// in the packages of the node opens connections.
//
// # Versions
//
// A store has a level, which determines the formats that nodes may write; see cosmos/level. Open fails if
// this version does not support the level of the store. If the level rises above the highest supported
// level while the node runs, the node stops immediately. level.go lists the supported levels, and
// formats.go the formats.
//
// # Readiness and limits
//
// Checks of the store, its containers and the disks of the folder run in the background
// (readiness.go), and /readyz reports their latest results. The file descriptors of the
// process are divided among the listeners; a part is reserved for files (connections.go).
package node
