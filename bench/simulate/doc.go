// Package simulate lets two hubs live in a world in which everything goes wrong, and
// holds them to what they promise. One seed is one world, and always the same one.
//
// What lives is what is shipped: cmd/node with the Azure clients for Cosmos DB,
// Service Bus and Blob Storage, the embedded engine, bus and account behind them, and
// domains that use the shipped client. Only the lines between them are the world's
// own, and the clock and the dice. All of it runs in one bubble of testing/synctest,
// so that an hour takes no time.
//
// # One thing at a time
//
// A [Scheduler] holds every request, every answer that is slow, every message on a
// connection to the bus and every deed of a party until it is its turn. When
// everything else is blocked it takes one, by the dice; perhaps a fault befalls it
// instead: the request is lost, or carried out and its answer lost, throttled, sent to
// a replica that lags, held for a minute while its sender gives up. In some worlds it is
// what is rarely asked that goes wrong. Between the steps time may pass, hubs are killed,
// told to stop or paused, clocks jump, the bus drops its connections, the account
// throttles everybody for minutes, a [busMisconfigurer] has queues be disabled, full or gone. After
// some hundred steps the [Profile] is fine for good, and everything has to come to its
// end; in some worlds a [corruptor] comes behind it. In half of the worlds with content on request and
// without a vandal, a [contentDeleter] deletes some of it from the store. Most worlds are small: without
// operators, crowds, keepers and vandals.
//
// A hub reaches the accounts by node.Options.Transport. In one of twelve simulations it uses
// its own HTTP clients, and node.Options.Dial connects it to a [httpReceiver] in the bubble: so
// does whatever else a hub calls.
//
// # What must hold
//
// After every commit of the engine, [invariants.Observer] compares the documents with the
// invariants H1 to H9 and L9. Package containers lists the containers of the hub with their
// judges; a request or a commit of any other container fails the run. A [referenceLedger]
// keeps what the parties saw: a bundle that is handed out twice is the same to the byte and
// never seen once its Dequeue was answered, but content that was deleted may be another one, and
// never comes once its deletion was answered (L9); an event is in one bundle, in order, as it was
// sent; what was accepted comes; who is told 404 is told the truth. Package history looks
// for an explanation of what the clients of one mailbox saw by a hub that does one thing at
// a time. In the end nothing may be left over.
//
// A [coverageObserver] counts how often states were reached that are rare, for a test that
// never gets there proves nothing.
//
// # Tokens
//
// In a fifth of the worlds the hubs accept tokens only. A [tokenIssuer] rotates its keys, and is away again and again:
// it refuses connections, sends nothing, or answers with 500. Clients get a new token before the one before expires.
// No token of a client is refused whose key the hub has, whether the issuer is away or not, and none for which the hub
// can get the key. A [tokenIntruder] shows forged and expired tokens, and those of another service, actor or domain.
// Each of its requests is refused, and the ledger sees that none had an effect.
//
// # Those who are called
//
// A third of the seeds has a [pushSimulation] besides: nodes of domain/delivery and cosmos/push that
// share the shards of an account, on lines like those of hubs, and receivers that they call
// through api/webhook by connections in the bubble. Receivers hang, drip, redirect, reset and
// lie about their length; one may end every node that calls it with a certain message. After
// every commit, package invariants/push holds the documents to the rules P1 to P8 of the push side;
// the world holds P9, P11 and P12, and in the end P1 and P5. The numbers of its faults begin at
// a million.
//
// In half of these worlds, and of those below, the fail-safe of one node or of all nodes is off: see
// [failSafe]. One node is killed and stays down. After the last fault, what it had is served because a
// node starts, because a node is asked about each cursor, or, in a [brokerSimulation], because the worker of
// the fail-safe has overdue jobs re-triggered. A [memberChecker] holds each node to P21.
//
// # Channels
//
// A third of the seeds has a [brokerSimulation] besides, on the nodes of a push world, each with the
// use cases of domain/broker. Syncs of several nodes put the same producers, channels and
// consumers; consumers are put while messages are broadcast with two priorities, some of them with
// the id of their producer and again; the consumers are called and fail, and some fetch bundles
// besides; operators re-trigger what is dead; a token is replaced. After every commit, package
// invariants/push holds P13, P15, P18 and P20, too. The world holds P15 at each call, P18 and P19 at each
// message that a consumer gets, P20 at each bundle, and in the end compares what nodes answer about
// messages, jobs and dead letters with what has happened. Package consumerhistory looks for an order of the calls,
// Peeks and Dequeues of each consumer by which no message came by both doors. The numbers of its faults begin at two
// millions.
//
// # Subscriptions
//
// A third of the seeds has a [subscriptionSimulation] besides, on the nodes of a push world, each with the
// use cases of domain/subscribe and domain/publish. Two owners may put the same subscription; they
// change, pause, resume and delete it while senders publish events, with and without ids, and publish
// them again, or with other content. Some subscriptions are ordered. The world holds P16 before each
// call, P18 and P19 at each answer and each call, and in the end that the cursors of what was deleted
// are retired. The numbers of its faults begin at three millions.
//
// # Watches
//
// A third of the seeds has a [watchSimulation] besides, on the nodes of a push world, each with the use cases
// of domain/watch, the relay of changes, and a store of bundles with its courier. Writers put, replace
// and delete documents of clients by both nodes; actors take bundles, which an operator may open again;
// owners create watches on both, replace their callbacks, read and delete them. Receivers also redirect
// to themselves. After every commit, package invariants and invariants/push hold P14 and the rule of notices. The
// world holds P18 at each creation and each call, W-13 at each answer and W-16 at each call, and in the
// end that each change is in the stream of its resource once, and each counter exact. The numbers of its
// faults begin at four millions.
//
// # The ledger of objects
//
// A third of the seeds has an [objectSimulation] besides: two nodes store the events of a few objects, each
// with the history of a random bucket. Messages have events of several objects, some of them twice, and
// come in any order and again. Objects have few rows inside, so that most decisions are about spilled
// rows. In half of these worlds nodes crawl the bucket, which changes meanwhile, also while it is listed; nodes
// die within a crawl. In half of them users patch current rows, and in a third nodes forget what is older
// than six hours; then all of that comes again two weeks later.
//
// After every commit, package invariants/objects holds L1 to L8 and L10. In the end, the current state is that
// of the bucket if all events were reported and no clock was wrong, or if one crawl has followed all that
// was reported; a crawl then finds no difference. After a last crawl it is that of the bucket in each world. The
// counts are those of the deliveries that were answered; one that was not answered may have been counted or
// not. A check finds nothing. The numbers of its faults begin at five millions.
//
// # The same again
//
// A seed determines the world, if package seeded has its say in the choices of the Go
// runtime; go run ./bench/simulate/prove builds it so. When a seed fails, the faults
// are left out that it fails without, and what is left is printed with the command that
// shows it again. Without package seeded, as go test runs it, a seed is the same world
// nearly always.
//
// What this leaves to others: the disk (crash images of the engines' own tests), the
// real process (package crashsites), all orders of few requests (package explorer),
// the network under HTTP and AMQP.
package simulate
