// Package crashsites kills a real hub just before and just after every named step of its protocols, starts it again,
// and checks the result against a ledger: no event is lost, none is in two bundles, the order is kept, and the domain
// is notified of every bundle. A check finds no damage, repairs hints and unfinished Saves, and then finds nothing.
//
// The hub is a process of its own: this package's test binary, started again, which runs cmd/node as it ships. It
// kills itself with SIGKILL, so nothing is flushed, closed or reported. The hub contains no code for that: a kill
// switch between the hub and its engines reads from each request, or from each AMQP frame, which step it is.
//
//	before   the engine has not received the request, or the hub has not received the message
//	after    the engine has answered and the hub has not received the answer; or the hub has
//	         processed the message and reads the next one
//
// # Crash sites and runs
//
// A crash site is a setup, a step and a side of the step. In the setup embedded, engine, bus and content die with the
// hub. In the setup apart, they are the shipped emulators, each in a process that is not killed, and the hub must
// expect stale reads.
//
// A run is one folder and a list of crash sites. Under a continuous load (events by HTTP and by the bus, in all three
// content modes, drawers of three events) the hub is killed at one crash site after the other, the first to fourth
// time that it reaches it. Then it is drained and checked. Some steps happen only after a kill at another step; that
// kill comes first. Steps of a sweep have runs of their own in which all events were fetched before, because swept
// events are not recognized and must not be sent again. Heads with tails have runs of their own too, for small Saves
// and flushes, and for every second sweep.
//
// In runs of the push side, events are published and two receivers are called, which fail the first call, while
// subscriptions are created and deleted. At the end each receiver has accepted each event, and no more calls were
// repeated than were active at the kills.
//
// In runs of watches, two documents are changed, each by one writer. Each has a permanent watch and others that are
// created and deleted. At the end each permanent watch has accepted each change and counts it once.
//
// In runs of objects, a node stores the events of objects in messages of 24. The node is not a hub: it has the object
// store, an engine and an HTTP server. Batches that spill rows are split there, so kills at the step spill happen
// before, between and after the halves. At the end each event is stored once, and its count is the number of its
// answered deliveries, or higher by unanswered ones.
//
// Other runs of such a node concern stored objects. Crawls compare buckets with a store, twice for each bucket: each
// difference has one row, and the second crawl finds none. The clock of each node is ahead of its predecessor's, so
// that it resumes a dead node's job at once. Patches add attributes to single rows and, by jobs, to all rows; at the
// end each attribute is there once. Sweeps forget rows and objects; the result equals that of a store in memory, also
// after all events were delivered again. A relay publishes the changes of objects to their topic; at the end the
// topic has each change once.
//
// In runs of deleted content, the content of open bundles is deleted from the folder of the hub. The next Peek marks
// the bundle, and its domain produces the content again.
//
// A step that a hub does not reach within a minute is missed and left to another run. The campaign continues until
// each crash site has its number of kills. A run that misses all of its crash sites fails.
//
// # What it leaves to others
//
// The order of requests depends on the load of the machine, so a seed repeats the choice of crash sites and events,
// but not the moment of a kill; package simulate repeats everything. SIGKILL keeps what was written but not synced;
// the tests of the embedded engines lose that. Tests of cmd/messagehub kill the emulators.
package crashsites
