// Package crashsites kills a real hub just before and just after every named step of its protocols, starts it again,
// and checks the result against a ledger: no event is lost, none is in two bundles, the order is kept, and the domain
// is notified of every bundle. A check finds no damage, repairs hints and unfinished Saves, and then finds nothing.
//
// The hub is a separate process: this package's test binary, started again, which runs the shipped package cmd/node.
// The process kills itself with SIGKILL, so nothing is flushed, closed or reported. The hub contains no code for the
// kills: a kill switch between the hub and its engines recognizes the step of each request and of each AMQP frame.
//
//	before   the engine has not received the request, or the hub has not received the message
//	after    the engine has answered and the hub has not received the answer; or the hub has
//	         processed the message and reads the next one
//
// # Crash sites and runs
//
// A crash site is a setup, a step and a side of the step. In the setup embedded, engine, bus and content die with the
// hub. In the setup apart, engine, bus and content are the shipped emulators, each in a process that is not killed, and
// the hub must expect stale reads.
//
// A run is one folder and a list of crash sites. Under a continuous load (events by HTTP and by the bus, in all three
// content modes, drawers of three events) the hub is killed at one crash site after the other, the first to fourth time
// that it reaches the site. After the kills, the hub is drained and checked. Some steps happen only after a kill at a
// different step, so the run first kills the hub at that step. Steps of a sweep have separate runs, in which all events
// were fetched before the sweep: a hub does not recognize swept events, so they must not be sent again. Heads with
// tails have separate runs for small Saves and flushes, and every second run of sweeps has tails too.
//
// In runs of the push side, events are published to two receivers, which fail the first call of each event, while
// other subscriptions are created and deleted. At the end each receiver has accepted each event, and the number of
// repeated calls is at most the number of calls that were active at the kills.
//
// In runs of watches, two documents are changed, each by one writer. Each document has one permanent watch, and other
// watches that are created and deleted. At the end each permanent watch has accepted each change and counted the change
// once.
//
// In runs of objects, a node stores the events of objects in messages of 24 events. The node is not a hub: it consists
// of the object store, an engine and an HTTP server. The store splits batches that spill rows, so kills at the step
// spill happen before, between and after the halves of a batch. At the end each event is stored once. The count of an
// event is at least the number of its answered deliveries, and at most the number of all its deliveries.
//
// Other runs of the same node concern stored objects. Crawls compare buckets with a store, twice for each bucket: each
// difference results in one row, and the second crawl finds no difference. The clock of each node is ahead of its
// predecessor's clock, so the node resumes a dead node's job without waiting for the lease. Patches add attributes to
// single rows and, by jobs, to all rows; at the end each attribute is stored once. Sweeps forget rows and objects; the
// result equals that of a store in memory, also after all events were delivered again. A relay publishes the changes
// of objects to their topic; at the end the topic has each change once.
//
// In runs of deleted content, the content of open bundles is deleted from the folder of the hub. The next Peek marks
// the bundle, and its domain produces the content again.
//
// If a hub does not reach a step within a minute, the run records the crash site as missed, and a later run tries it
// again. The campaign continues until each crash site has its number of kills. A run that misses all of its crash sites
// fails.
//
// # Limits
//
// The order of requests depends on the load of the machine, so a seed repeats the choice of crash sites and events,
// but not the moment of a kill; package simulate repeats everything. SIGKILL does not lose bytes that were written but
// not synced; the tests of the embedded engines lose them. Tests of cmd/messagehub kill the emulators.
package crashsites
