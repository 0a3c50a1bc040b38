// Package simulate runs the shipped hub in a deterministic simulation with injected faults, and checks after every
// step that the hub keeps its guarantees. One seed is one simulation: the same seed always takes the same steps.
//
// The code under test is the code that ships: cmd/node with the Azure clients for Cosmos DB, Service Bus and Blob
// Storage, the embedded engine, bus and Blob account behind them, and domains that use the shipped client. Only the
// transports between them, the clock and the source of randomness belong to the simulation. All of it runs in one
// bubble of testing/synctest, so an hour of simulated time costs nothing.
//
// # Rooms
//
// Packages: [scheduler] decides which step comes next and whether a fault replaces it; [random] repeats its draws;
// [coverage] counts rare states; containers and steps name what hubs store and request; invariants, invariants/push
// and invariants/objects check every commit; history and consumerhistory look for a sequential explanation of what
// clients saw; explorer runs all interleavings of small scenarios; crashsites kills real processes; mutants leaves
// out one rule after the other; prove runs campaigns.
//
// Files of this package begin with their room: environment (accounts and hubs), transport (HTTP and AMQP between
// them), client (domains, actors, operators), workload (what the clients do, and when), fault (what goes wrong for a
// while), corruption (damage to stored data), invariant (what is checked), and push, broker, subscription, watch and
// objects for the simulations of the other parts of a hub.
//
// # One step at a time
//
// The scheduler holds every request, every delayed answer, every AMQP frame and every action of a client until its
// turn. When everything else is blocked, it draws one. A fault may replace it: the request is lost, its answer is
// lost, it is throttled, it reads a stale replica, or it arrives a minute later, after its sender has given up. Some
// simulations inject faults into rare requests more often.
//
// Between steps time may pass, hubs are killed, stopped or paused, clocks jump, the bus drops its connections, the
// account throttles all requests for minutes, and a [busMisconfigurer] disables, fills or deletes queues. After some
// hundred steps faults end for good, and every client must be able to finish. Then, in some simulations, a
// [corruptor] damages stored documents. In half of the simulations with content on request and without a corruptor, a
// [contentDeleter] deletes some of that content. Most simulations are small: they have no operators, load bursts,
// misconfigured queues and corruption.
//
// A hub reaches the accounts by node.Options.Transport. In one of twelve simulations it uses its own HTTP clients,
// and node.Options.Dial connects all of them to an [httpReceiver] in the bubble.
//
// # What is checked
//
// After every commit, [invariants.Observer] checks the documents against the invariants H1 to H9 and L9. Package
// containers lists the containers of the hub with their checkers; a request or a commit of any other container fails
// the run.
//
// A [referenceLedger] records what clients saw. A bundle that is returned twice is the same to the byte, and is never
// returned after its Dequeue was answered. If content was deleted, the bundle may get another one; deleted content is
// never returned after the deletion was answered (L9). An event is in one bundle, in order, as it was sent. An
// accepted event is delivered. A 404 is right. Package history looks for a sequential hub that explains what the
// clients of a mailbox saw. At the end nothing may be left to deliver.
//
// A [coverageObserver] counts how often rare states were reached, because a test that never reaches a state proves
// nothing about it.
//
// # Tokens
//
// In a fifth of the simulations hubs accept requests with tokens only. A [tokenIssuer] rotates its keys, and is
// repeatedly unavailable: it refuses connections, does not answer, or answers with 500. Clients renew their tokens
// before they expire. A token is never refused if the hub knows its key, whether the issuer is available or not, or
// if the hub can fetch the key. A [tokenIntruder] sends forged and expired tokens, and tokens of another service,
// actor or domain. Each of its requests is refused, and none has an effect.
//
// # Receivers
//
// A third of the seeds also has a [pushSimulation]: nodes of domain/delivery and cosmos/push share the shards of an
// account, and call receivers through api/webhook by connections in the bubble. Receivers hang, drip, redirect, reset
// connections and send wrong lengths; one of them may end every node that calls it with a certain message. After
// every commit, package invariants/push checks the rules P1 to P8; the simulation checks P9, P11 and P12, and at the
// end P1 and P5. Its faults are numbered from a million.
//
// In half of these simulations, and of those below, the fail-safe of one node or of both is disabled: see [failSafe].
// One node is killed and stays down. After the last fault its cursors are served because a node starts, because a
// node is asked about each cursor, or, in a [brokerSimulation], because the fail-safe worker re-triggers overdue
// jobs. A [memberChecker] checks P21 on each node.
//
// # Channels
//
// A third of the seeds also has a [brokerSimulation]: a push simulation whose nodes run the use cases of
// domain/broker. Several nodes put the same producers, channels and consumers. Consumers are put while messages of
// two priorities are broadcast, some of them repeatedly with the id of their producer. Consumers are called and fail,
// and some of them also fetch bundles; operators re-trigger dead jobs; a token is replaced. After every commit,
// package invariants/push also checks P13, P15, P18 and P20. The simulation checks P15 at each call, P18 and P19 at
// each message that a consumer gets, and P20 at each bundle. At the end it compares what nodes report of messages,
// jobs and dead letters with what happened. Package consumerhistory looks for an order of each consumer's calls,
// Peeks and Dequeues in which no message was delivered both by a call and in a bundle. Its faults are numbered from
// two million.
//
// # Subscriptions
//
// A third of the seeds also has a [subscriptionSimulation]: a push simulation whose nodes run the use cases of
// domain/subscribe and domain/publish. Two owners may put the same subscription. They change, pause, resume and
// delete it while senders publish events, with and without ids, repeat them, or repeat them with other content. Some
// subscriptions are ordered. The simulation checks P16 before each call, P18 and P19 at each answer and each call,
// and at the end that the cursors of deleted subscriptions are retired. Its faults are numbered from three million.
//
// # Watches
//
// A third of the seeds also has a [watchSimulation]: a push simulation whose nodes run the use cases of domain/watch,
// the relay of changes, and a store of bundles with its notice relay. Writers put, replace and delete documents of clients
// through both nodes; actors take bundles, which an operator may open again; owners create watches on both, replace
// their callbacks, read and delete them. Receivers also redirect to themselves. After every commit, packages
// invariants and invariants/push check P14 and the rule of notices. The simulation checks P18 at each creation and
// each call, W-13 at each answer and W-16 at each call, and at the end that each change is in the stream of its
// resource once, and each counter is exact. Its faults are numbered from four million.
//
// # Objects
//
// A third of the seeds also has an [objectSimulation]: two nodes store the events of a few objects with random
// histories. Messages hold events of several objects, some of them twice, and are delivered in any order and
// repeatedly. An object holds few rows itself, so most decisions are about spilled rows. In half of these simulations
// nodes crawl the bucket, which changes meanwhile, and die within a crawl. In half of them users patch current rows.
// In a third, nodes forget rows older than six hours, and the messages are delivered again two weeks later.
//
// After every commit, package invariants/objects checks L1 to L8 and L10. At the end, the current state is that of
// the bucket if all events were reported and no clock was wrong, or if one crawl came after all reports; another
// crawl then finds no difference. After a last crawl it is that of the bucket in every simulation. The counts match
// the answered deliveries; an unanswered delivery may have been counted or not. A check finds nothing. Its faults are
// numbered from five million.
//
// # Repeating a seed
//
// A seed determines the simulation if package seeded controls the choices of the Go runtime; go run
// ./bench/simulate/prove builds it so. When a seed fails, faults are removed as long as it still fails, and the rest
// is printed with the command that repeats it. Without package seeded, as go test runs it, a seed repeats itself
// nearly always.
//
// The names of turns, faults and clients take part in the draws, so they keep their first form, also where the code has
// another word: maker is a [contentDomain], crowd a [loadBurst], keeper a [busMisconfigurer], vandal a [corruptor],
// ward a [corruptedMailbox], and night a wait for the retention.
//
// Not covered here: the disk (the engines' own tests use crash images), the real process (package crashsites), every
// order of few requests (package explorer), and the network below HTTP and AMQP.
package simulate
