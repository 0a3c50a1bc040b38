// Package simulate runs the shipped hub in a deterministic simulation with injected faults, and checks after every
// step that the hub keeps its guarantees. One seed is one simulation: the same seed always takes the same steps.
//
// The code under test is the code that ships: cmd/node with the Azure clients for Cosmos DB, Service Bus and Blob
// Storage, the embedded engine, bus and Blob account behind these clients, and domains that use the shipped domain
// client. The simulation replaces only the transports, the clock and the source of randomness. Hubs, accounts and
// clients run in one bubble of testing/synctest, so an hour of simulated time takes no real time.
//
// # Packages and files
//
// The packages below this folder:
//
//   - [scheduler] decides which step comes next and whether a fault replaces it; [random] is the repeatable source of
//     randomness.
//   - [coverage] counts rare states.
//   - containers lists the containers of hubs; steps names the requests of hubs.
//   - invariants, invariants/push and invariants/objects check every commit.
//   - history and consumerhistory check whether a sequential hub could have produced what clients received.
//   - explorer runs all interleavings of small scenarios; crashsites kills real processes.
//   - mutants breaks one rule at a time; prove runs campaigns.
//
// The first word in the name of a file says which component it contains: environment (accounts and hubs), transport
// (HTTP and AMQP between accounts and hubs), client (domains, actors, operators), workload (what the clients do, and
// when), fault (temporary faults), corruption (damage to stored data) and invariant (checks). The files push, broker,
// subscription, watch and objects contain the simulations of the other parts of a hub.
//
// # One step at a time
//
// Every request, every delayed response, every AMQP frame and every action of a client waits for its turn. When all
// goroutines are blocked, the scheduler draws one of the waiting turns at random. A fault may replace the turn: a
// request or its response is lost, the request is throttled or reads a stale replica, or the request arrives a minute
// later, after its sender has given up. Some simulations inject faults into rare requests more often.
//
// Between steps, time may pass, hubs are killed, stopped or paused, clocks jump, the bus drops its connections, the
// account throttles all requests for minutes, and a [busMisconfigurer] disables, fills or deletes queues. After some
// hundred steps the faults end permanently, and every client must be able to finish. In some simulations, a
// [corruptor] damages stored documents after the faults. In half of the simulations with content on request and
// without a corruptor, a [contentDeleter] deletes some of that content. Most simulations are small: they have no
// operators, load bursts, misconfigured queues or corruption.
//
// In most simulations, node.Options.Transport carries the requests of a hub to the accounts. In one of twelve
// simulations, hubs use their own HTTP clients, and node.Options.Dial connects these clients to an [httpReceiver] in
// the bubble.
//
// # What is checked
//
// After every commit, [invariants.Observer] checks the documents against the invariants H1 to H9 and L9. Package
// containers lists the containers of the hub with their checkers; a request or a commit of an unlisted container fails
// the simulation.
//
// A [referenceLedger] records what clients send and receive, and checks these rules:
//
//   - A bundle that is returned twice has the same bytes, and is never returned after its Dequeue succeeded.
//   - If content was deleted, the bundle may get new content; deleted content is never returned after the deletion
//     succeeded (L9).
//   - An event is in one bundle, in order, and unchanged.
//   - Every accepted event is delivered.
//   - A 404 is returned only if it is correct.
//
// Package history checks whether a sequential hub could have produced what the clients of a mailbox received. At the
// end, every accepted event must be delivered.
//
// A [coverageObserver] counts how often rare states were reached, because a test that never reaches a state does not
// test that state.
//
// # Tokens
//
// In a fifth of the simulations, hubs accept only requests with tokens. A [tokenIssuer] rotates its keys, and is
// repeatedly unavailable: it refuses connections, does not respond, or responds with status 500. Clients renew their
// tokens before the tokens expire. A hub never refuses a token whose key it knows or can fetch, even if the issuer is
// unavailable. A [tokenIntruder] sends forged and expired tokens, and tokens of a different service, actor or domain.
// Each request of the intruder must be refused and have no effect.
//
// # Receivers
//
// A third of the seeds also have a [pushSimulation]: nodes of domain/delivery and cosmos/push share the shards of an
// account, and call receivers through api/webhook over connections in the bubble. Receivers hang, respond one byte at a
// time, redirect, reset connections and send wrong lengths; one receiver may kill every node that calls it with a
// certain message. After every commit, package invariants/push checks the rules P1 to P8. The simulation checks P9, P11
// and P12, and at the end P1 and P5. The faults of this simulation are numbered from a million.
//
// In half of these simulations, and of the simulations described below, the fail-safe of one node or of both nodes is
// disabled: see [failSafe]. One node is killed and stays down. After the last fault, one of three events causes the
// cursors of the dead node to be served: a node starts, a node receives a request about each cursor, or, in a
// [brokerSimulation], the fail-safe worker re-triggers overdue jobs. A [memberChecker] checks P21 on each node.
//
// # Channels
//
// A third of the seeds also have a [brokerSimulation]: a push simulation whose nodes run the use cases of
// domain/broker. Several nodes put the same producers, channels and consumers. Consumers are put while producers
// broadcast messages of two priorities; a producer may repeat a message with the same id. Consumers are called and
// fail, and some consumers also fetch bundles. Operators re-trigger dead jobs, and a token is replaced.
//
// After every commit, package invariants/push also checks P13, P15, P18 and P20. The simulation checks P15 at each
// call, P18 and P19 at each message that a consumer receives, and P20 at each bundle. At the end, it compares the
// messages, jobs and dead letters that nodes report with the recorded deliveries. Package consumerhistory searches for
// an order of each consumer's calls, Peeks and Dequeues in which no message was delivered both by a call and in a
// bundle. The faults of this simulation are numbered from two million.
//
// # Subscriptions
//
// A third of the seeds also have a [subscriptionSimulation]: a push simulation whose nodes run the use cases of
// domain/subscribe and domain/publish. Two owners may put the same subscription. Owners change, pause, resume and
// delete subscriptions. At the same time, senders publish events with and without ids, and repeat events with the same
// or different content. Some subscriptions are ordered. The simulation checks P16 before each call, and P18 and P19 at
// each response and each call. At the end, it checks that the cursors of deleted subscriptions are retired. The faults
// of this simulation are numbered from three million.
//
// # Watches
//
// A third of the seeds also have a [watchSimulation]: a push simulation whose nodes run the use cases of domain/watch,
// the relay of changes, and a store of bundles with the relay of notices. Writers put, replace and delete documents of
// clients through both nodes. Actors peek and dequeue bundles. An operator may open dequeued bundles again. Owners
// create watches on documents and bundles, replace the callbacks of watches, and read and delete watches. Receivers
// also redirect to themselves.
//
// After every commit, packages invariants and invariants/push check P14 and the rule of notices. The simulation checks
// P18 at each creation and each call, W-13 at each response and W-16 at each call. At the end, it checks that each
// change is in the stream of its resource once, and that each counter is exact. The faults of this simulation are
// numbered from four million.
//
// # Objects
//
// A third of the seeds also have an [objectSimulation]: two nodes store the events of a few objects with random
// histories. A message contains events of several objects, some of them twice. Messages are delivered in any order and
// repeatedly. The document of an object holds few rows, so most decisions involve spilled rows. In half of these
// simulations, nodes crawl the bucket while it changes, and die during a crawl. In half, users patch current rows. In a
// third, nodes forget rows older than six hours, and the messages are delivered again two weeks later.
//
// After every commit, package invariants/objects checks L1 to L8 and L10. At the end, the simulation checks these
// rules:
//
//   - If all events were reported and no clock was wrong, or if a crawl ran after all reports, the current state in the
//     ledger equals the bucket, and another crawl finds no difference.
//   - After a last crawl, the current state equals the bucket in every simulation.
//   - The counts match the deliveries that got a response; a delivery without a response may be counted or not.
//   - A check of the store finds nothing.
//
// The faults of this simulation are numbered from five million.
//
// # Repeating a seed
//
// A seed determines the simulation if package seeded controls the choices of the Go runtime; go run
// ./bench/simulate/prove builds the simulation with package seeded. When a seed fails, faults are removed as long as
// the seed still fails. The remaining faults are printed with the command that repeats the failure. go test runs the
// simulation without package seeded; a seed then repeats its trace nearly always.
//
// # How to read a trace
//
// A replay prints one trace for each simulation of the seed. Above each trace is a heading such as === 7022/mailboxes,
// which -replay accepts. In each trace, steps and simulated times begin at 0. A line such as
//
//	263 1m53.5s hub-0.8 read head [503 #17] → 503
//
// has these parts:
//
//   - The number of the step. A line that is no step has the number of the step before it: a part of a handshake with
//     the bus, a fault that replaces no turn, time that passes, or a line of a hub's log ("says").
//   - The simulated time.
//   - The process or the client. hub-0.8 is the eighth process of hub 0.
//   - The turn: the purpose of a request (see package steps; "other" is a request for an account or a container, or
//     without a known purpose), an action of a client, or frames on an AMQP connection of the process ("2 sends begin").
//   - The fault that replaces the turn, and its number: -drop 17 omits it. Other faults have only a number, [#18], after
//     the words that describe them: a stale read ("200, 3 old"), a delayed response ("on its way for 2s"), or the end of
//     a process ("is killed").
//   - The outcome. A number is the status of the response. "goes": the client acts. "carried": the bus or the hub gets
//     the frames. "no answer": the sender gets a connection error. "request lost": the account does not get the
//     request, and its sender gets a connection error after two minutes. "arrived": the sender gets a delayed response.
//
// The names of turns, faults and clients take part in the draws. So they keep their first form even where the code now
// uses a different word: maker is a [contentDomain], crowd a [loadBurst], keeper a [busMisconfigurer], vandal a
// [corruptor], ward a [corruptedMailbox], and night a wait for the retention.
//
// The simulation does not cover the disk (the tests of the engines use crash images), real processes (see package
// crashsites), every possible order of a few requests (see package explorer), or the network below HTTP and AMQP.
package simulate
