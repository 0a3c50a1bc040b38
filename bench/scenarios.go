package bench

// scenarios are in the order in which they are run; those that measure one operation
// come first.
var scenarios = []Scenario{
	{"worst-peek", "a bundle of 51,200 events of 1 KB in six drawers is opened", measureWorstPeek},
	{"dequeue", "that bundle is confirmed, and one of a single event beside it", measureDequeue},
	{"save", "the same events are saved for the first time, and 10,000 at a time", measureSave},
	{"price", "what an event costs over its whole life, saved in batches of 125 and alone", measurePrice},
	{"trickle", "single events are sent to many recipients, who fetch and confirm them: alone, with payloads, on a Session account", measureTrickle},
	{"busy", "single events are sent to one recipient, 1 to 2,000 a second, with and without tails", measureBusyRecipient},
	{"cold", "an event is saved for each of 1,000 recipients that the node has not met, for one with 8,000 events, and for three with events of 999 kinds", measureColdHeads},
	{"kinds", "events of 1 to 1,000 kinds are saved for one recipient, and again once 1,000 and 10,000 have come and gone", measureKinds},
	{"drain", "100,000 events are fetched and confirmed in bundles of 2,000", measureDrain},
	{"growth", "128 events are saved, peeked and dequeued while up to a million wait", measureGrowth},
	{"large-backlog", "single events are saved while up to 400,000 wait in drawers of 100, as 40 million would in drawers of 10,000", measureLargeBacklog},
	{"year", "a recipient gets an event every 6 hours, and one every hour, for a year of simulated time", measureYear},
	{"repeating-peeks", "a bundle is confirmed beside up to 32 clients that repeat their Peek every 50 ms", measureRepeatingPeeks},
	{"many-actors", "1,000 recipients, 2,000 events/s in batches of 20, each peeks every 10 s and dequeues, for ten minutes", measureManyActors},
	{"hot-actor", "one recipient takes 90 % of 1,000 events/s, a hundred others the rest", measureHotActor},
	{"push", "events are published over HTTP and delivered to one receiver and to five, beside one that hangs, 300 a second, and by a relay that keeps nothing", measurePush},
	{"broker", "messages are broadcast to one consumer and to five, one by one, in a burst, and beside one that hangs", measureBroker},
	{"watches", "a document with 100,000 watches is changed, beside a loop of the same calls, and bundles that are watched are confirmed, 100 a second", measureWatches},
	{"ledger", "stores report objects over HTTP in messages of 10 to 100 events and one by one, to one node and to two; up to a million objects are listed, in pages of 100", measureObjectLedger},
	{"noisy-neighbour", "the partitions of one recipient are throttled, a hundred others are not", measureNoisyNeighbour},
}

// Tokens returns a scenario that Scenarios does not list. It compares nodes and does not measure an
// account, so the command of operators does not contain its code.
func Tokens() Scenario {
	return Scenario{"tokens", "a hub with tokens beside one without, under many actors and at the worst Peek; 10,000 forged tokens beside an honest actor; an issuer that is away, a full listener", compareTokens}
}
