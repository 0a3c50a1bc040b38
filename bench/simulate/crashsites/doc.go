// Package crashsites kills a real hub just before and just after every named step of
// what it does, starts it again, and holds what comes of it to a ledger: nothing
// lost, no event in two bundles, order kept, the domain notified of every bundle; and a check
// finds no damage, mends hints and unfinished Saves, and then finds nothing more.
//
// A hub here is a process of its own: this package's test, executed once more, that
// runs cmd/node as it ships. It kills itself with SIGKILL, so nothing in it is
// flushed, closed or told. Nothing of that is built into the hub: whoever stands
// between it and its engines reads from a request, or from a frame of AMQP, which
// step it is.
//
//	before   the engine has not been asked, or the hub has not seen the message
//	after    the engine has answered, and the hub does not know; or the hub has taken
//	         the message and comes back for more
//
// # Cells and worlds
//
// A cell is a place, a step and a side of it. In the place embedded, engine, bus and
// content die with the hub; apart, they are the shipped emulators, each in a process
// that lives on, and reads may be old as far as the hub knows.
//
// A world is one folder and a row of cells. Under a load that does not stop (events
// by HTTP and by the bus, in all three content modes, drawers of three events) the
// hub dies at one cell after the other, at the first to fourth time that it comes
// there; then it is drained and checked. Some steps are taken only where a death has
// left something undone: that death comes first. Steps of a sweep have worlds of
// their own, in which all was fetched before, for what is swept is not known any more
// and must not be sent again. Where heads have tails, small Saves and flushes have worlds
// of their own, and so have the sweeps of every second world.
//
// In worlds of the push side, events are published and two receivers called, the first time
// without success, while subscriptions come and go. In the end each receiver has taken each
// event, and no more calls were repeated than there may have been under way.
//
// In worlds of watches, two documents are changed, each by one writer, and each has a watch that stays and
// others that come and go. In the end each watch that stayed has taken each change, and its counters have
// each change once.
//
// In worlds of objects, a node stores the events of objects in messages of 24 of them. It is no hub: it
// has the store of objects, an engine and a door of HTTP. Batches with spilled rows are halved there, so
// deaths at the step spill are before, between and after the halves. In the end each event is
// stored once, and counted as often as it was answered, or as often more as it was not.
//
// Other worlds of such a node are about what it does with objects that are stored. Crawls compare buckets with a
// store, two for each bucket: each difference has one row, and the second crawl finds none. The clock of
// each node is ahead of the one before, so that it resumes the job of a dead one at once. Patches add
// attributes to single rows, and by jobs to all; each is there once in the end. Sweeps forget rows and objects, and what they leave is
// what a store in memory has, also after all events were delivered again.
// A relay publishes the changes of objects to their topic; in the end the topic has each change once.
//
// In worlds of deleted content, the content of open bundles is deleted from the folder of the hub. The next Peek
// marks the bundle, and its domain makes the content again.
//
// A step that a hub does not come to within a minute is missed, and is another world's.
// The campaign goes on until each cell has had its deaths; a world that misses all of
// its cells is a failure.
//
// # What it leaves to others
//
// The order of requests is that of a busy machine, so a seed draws cells and events
// again, and not the moment of a death: package simulate is the one that replays.
// What SIGKILL spares, above all what was written and not synced, is lost in the
// tests of the embedded engines. Emulators that die are in those of cmd/messagehub.
package crashsites
