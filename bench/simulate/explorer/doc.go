// Package explorer runs every interleaving of small scenarios of the shipped package cosmos: two or three processes,
// one recipient, two cabinets, drawers of three events. Scenarios of watches use package cosmos/push and the use
// cases of domain/watch: one document of clients, its changes and its watches. Scenarios of objects use package
// cosmos/objects: one or two objects, and the messages with their events. Scenarios with a topic publish the changes
// of an object with package domain/publish.
//
// A model of a protocol can be checked exhaustively, but a model may differ from the code. The explorer checks the code
// instead. Each party is a process that runs cosmos.New and the real azcosmos client in a testing/synctest bubble. The
// explorer holds each request of a party and decides when the embedded engine answers it.
//
// # States
//
// A party is a deterministic function of the answers that it received: its ids come from a seeded source, and its
// clock stands still. So a party is identified by its history, the list of its requests and their answers, and
// replaying the answers restores the party. The documents identify the store. A state consists of the documents, the
// history of each party, and the remaining budgets of faults. The explorer visits all states breadth first, each once,
// so the first path to a violation is a shortest one.
//
// The engine adds values to documents and answers that would make equal states different, so the explorer makes them
// canonical. It replaces an etag by the id of the document and the number of its writes, and removes time stamps,
// resource ids, session tokens, charges and activity ids. So two writes of different documents lead to the same state
// in either order.
//
// Parties do not communicate, and a request reads or writes one logical partition. So the next requests of a party
// are computed once for each history, and the effect of a request once for each content of its partition. Reads are
// choices like writes, and the concurrent requests of a party are separate choices. There is one reduction. The order
// in which concurrent requests of a party are answered does not distinguish histories, if the answers are the same
// and the party then makes the same requests, each after the same answers. The reduction is valid because the code
// waits for all concurrent requests before it continues, and stores the result of each one separately. A test compares
// the ends of explorations with and without the reduction.
//
// # Time
//
// Parties wait only for a backoff or a lease, and neither depends on the other parties: a process may be arbitrarily
// slow. So each party has its own time. The time of a party passes only while the party has no pending request, and
// only until its next request; no request times out. cosmos.Options.Exclusive explores leases that end while their
// owner is alive: a party treats the intents of other parties as dead immediately, so a rollback may happen at any
// time. Two writers could then roll each other back forever. So a scenario limits the claims of intents, and each
// additional claim waits until the other parties are done or have crashed.
//
// # Faults
//
//   - A crash: the requests of a party are no longer answered. So a state is also an end if the number of unfinished
//     parties is within the scenario's limit for crashes. A pending request of a dead process may still arrive: the
//     explorer covers this as a slow party that dies later.
//   - A lost reply: the write is carried out, and the party sees a broken connection.
//   - A stale read, on a Session account: a read may return an earlier state of its
//     partition, without its last commits, up to the limit of the scenario. The state of
//     each partition is chosen independently. embedded.Options.Stale is weaker: it goes back
//     by commits of the whole account.
//
// # What is checked
//
// Every possible write is checked against the invariants of packages invariants, invariants/push and
// invariants/objects.
//
// At the end of every path, with or without a crash, a Check of the repository finds no damage. A new actor receives
// the committed events, each once and in order. Then a new writer saves all events again. After these Saves, every
// event is delivered exactly once. The answers that parties received must be right: saved events are stored, a
// dequeued bundle is closed, and all parties that received a bundle received the same events.
//
// At every end of a scenario of watches, a fresh node publishes the remaining changes. After this, the stream of the
// document has each of its changes once, in order. Each watch counts the changes after its start version. The start
// version is before each change that began after the watch was created. It is not before a change that was answered
// before the creation began.
//
// At every end of a scenario of objects, each answered event is stored once. Its count is the number of answered
// deliveries, plus at most the number of unanswered deliveries. Then all messages are delivered again, and the objects
// equal those of a node in memory.
//
// At every end of a scenario that forgets rows, all messages are delivered again. If a sweep of a party succeeded, the
// store has no row that the sweep had to forget. After another sweep, the objects equal those of a node in memory. In a
// scenario of a crawl, leases and cursors are in memory, and at the end the current row of the object matches the
// crawled store.
package explorer
