// Package explorer runs every interleaving of small scenarios of the shipped package cosmos: two or three processes,
// one recipient, two cabinets, drawers of three events. Scenarios of watches use package cosmos/push and the use
// cases of domain/watch: one document of clients, its changes and its watches. Scenarios of objects use package
// cosmos/objects: one or two objects, and the messages with their events. Those with a topic publish the changes of
// an object by domain/publish.
//
// A model of a protocol can be checked exhaustively, but it is not the code. Here the code is the model. Each party
// is a process that runs cosmos.New and the real azcosmos client in a testing/synctest bubble. The explorer holds
// each of its requests and decides when the embedded engine answers it.
//
// # States
//
// A party is a deterministic function of the answers that it received: its ids come from a seeded source, and its
// clock stands still. So its history, the list of its requests and their answers, identifies it, and repeating the
// answers restores it. The documents identify the store. A state is the documents, the history of each party, and the
// remaining budgets of faults. The explorer visits all states breadth first, each once, so the first path to a
// violation is a shortest one.
//
// What the engine adds would make equal states different, so it is made canonical: an etag becomes the id of its
// document and the number of its writes, and time stamps, resource ids, session tokens, charges and activity ids are
// removed. Two writes of different documents then lead to the same state in either order.
//
// Parties do not communicate, and a request reads or writes one logical partition. So the next requests of a party
// are computed once for each history, and the effect of a request once for each content of its partition. Reads are
// choices like writes, and the concurrent requests of a party are separate choices. There is one reduction: the order
// in which concurrent requests of a party are answered does not distinguish histories, if the answers are the same
// and the party then makes the same requests, each after the same answers. The code waits for all of these requests
// before it continues, and each has its own place for its result; a test compares the ends with those without the
// reduction.
//
// # Time
//
// Parties wait only for a backoff or a lease, and neither depends on the other parties: a process may be arbitrarily
// slow. So each party has its own time. It passes only while the party has no pending request, and only until its
// next request; no request of a party times out. cosmos.Options.Exclusive explores leases that end while their owner
// is alive: the intents of others are dead at once, so a rollback may happen at any time. Two writers could then roll
// each other back without end, so a scenario limits the claims of intents, and a further claim waits until the other
// parties are done or have crashed.
//
// # Faults
//
//   - A crash: a party that is not answered any longer. A state with no more unfinished
//     parties than may crash counts as an end, too. A pending request of a dead process
//     may still arrive: that is a slow party which dies later.
//   - A lost reply: the write is carried out, and the party sees a broken connection.
//   - A stale read, on a Session account: any read may return a state of its partition
//     from before its last commits, up to the limit of the scenario, each partition by
//     itself. embedded.Options.Stale is weaker: it goes back by commits of the whole account.
//
// # What is checked
//
// Every possible write is checked against the invariants of packages invariants, invariants/push and
// invariants/objects.
//
// At the end of every path, with or without a crash, a Check of the repository finds no damage. A new actor receives
// the committed events, each once and in order. Then a new writer saves all events again, after which no event is
// missing and none is delivered twice. The answers that parties received must be right: saved events are stored, a
// dequeued bundle is closed, and all parties that received a bundle received the same events.
//
// At every end of a scenario of watches, a fresh node publishes the remaining changes. Then the stream of the
// document has each of its changes once, in order. Each watch counts the changes behind its version. That version is
// before each change that began after the watch was created, and not before a change that was answered before the
// creation began.
//
// At every end of a scenario of objects, each answered event is stored once. Its count is the number of answered
// deliveries, plus at most the number of unanswered ones. Then all messages are delivered again, and the objects
// equal those of a node in memory.
//
// At every end of a scenario that forgets rows, all messages are delivered again. If a party was answered that it has
// forgotten all that may be forgotten, none of it is there. After another sweep, the objects equal those of a node in
// memory. In a scenario of a crawl, leases and cursors are in memory, and the current row of the object at the end is
// that of the crawled store.
package explorer
