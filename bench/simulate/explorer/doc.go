// Package explorer goes through every interleaving of small scenarios of the
// shipped package cosmos: two or three processes, one recipient, two cabinets,
// drawers of three events. Scenarios of watches are of package cosmos/push, with the
// use cases of domain/watch: one document of clients, its changes and its watches. Scenarios of
// objects are of package cosmos/objects: an object or two, and the messages with their events. Those with
// a topic publish the changes of the object by domain/publish.
//
// A model of a protocol can be checked exhaustively, but it is not the code. Here
// the code is the model. Each party is a process that runs cosmos.New and the real
// azcosmos client in a testing/synctest bubble, and each request it makes is held
// until the explorer answers it. What answers is the embedded engine.
//
// # States
//
// A party is a deterministic function of the answers that it has got: its ids come
// from a seeded source, its clock stands still. So it is known by its history, the
// list of its requests and their answers, and whoever knows the history can have the
// party back by answering the same again. The store is known by its documents. A
// state is the documents, the history of each party, and what is left of each
// budget of faults; the explorer goes through all states, breadth first, and looks
// at none twice. The first way to a violation is therefore a shortest one.
//
// What the engine adds of its own would make equal states different, so it is taken
// out on the way: an etag becomes the id of its document and how often that has been
// written, and time stamps, resource ids, session tokens, charges and activity ids
// go. Two writes of different documents then lead to the same state in either order.
//
// Parties do not talk to each other, and a request reads or writes one logical
// partition. So what a party does next is worked out once for each history, and what
// a request does once for each content of its partition; the rest is looking up.
// Reads are choices like writes, and the requests that a party has under way at once
// are separate choices. There is one reduction: if a party had several requests under
// way, it is taken for the same whatever the order of the answers, provided that it has
// been told the same and asks the same from there on, each request since the same point
// of its past. The code waits for all of them before it goes on, and each has its own
// place for what it finds; a test compares the ends with those without the reduction.
//
// # Time
//
// Parties wait for nothing but a backoff or a lease, and neither says anything about
// the others: a process may be as slow as it likes. So time is each party's own. It
// passes only while the party has nothing under way, and then as far as its next
// request; no request of a party times out. That a lease ends while its owner is
// alive is explored by cosmos.Options.Exclusive, for which an intent of anybody else
// is dead at once: a rollback at any time. Two writers could then undo each other for
// ever; so a scenario bounds the claims of intents, and a claim beyond the bound waits
// until the others are done, or have crashed.
//
// # Faults
//
//   - A crash: a party that is never answered again. A state in which no more parties
//     are unfinished than may crash is taken for an end, too. What a dead process had
//     under way may still arrive: that is a slow party which dies later.
//   - A lost reply: the write is carried out, and the party sees a broken connection.
//   - A stale read, on a Session account: any read may be answered by the partition as
//     it was up to so many commits of that partition ago, each partition by itself.
//     That is more than embedded.Options.Stale does, which goes back by commits of the
//     whole account.
//
// # What is checked
//
// Every write that is possible in a state is held to the invariants of package invariants,
// invariants/push and invariants/objects.
// At every end, whatever has crashed, a Check of the repository finds no damage; a
// fresh actor gets what is committed, each event once and in order; then everything
// is saved again by a fresh writer, and after that nothing is missing and nothing
// comes twice. What a party was told by then has to be true: what was saved is there,
// a bundle that was dequeued is closed, one bundle looks the same to all.
//
// At every end of a scenario of watches, a fresh node publishes what is left. Then the
// stream of the document has each of its changes once, in order; each watch counts
// those behind its version, which is before each change that began after its creation
// was answered, and not before a change that was answered before its creation began.
//
// At every end of a scenario of objects, each event that was answered is stored once, and counted as
// often as it was answered, or as often more as an answer was lost. Then all messages are delivered
// again, and the objects are those of a node in memory.
//
// At every end of a scenario in which rows of objects are forgotten, all messages are delivered again. If a party
// was answered that it has forgotten all that may be forgotten, nothing of that is there. After another
// sweep, the objects are those of a node in memory. In a scenario of a crawl, its leases and cursors are in memory, and the
// current row of the object is in the end that of the store that was crawled.
package explorer
