package bench

// scenarios are in the order in which they are run; those that measure one operation
// come first.
var scenarios = []Scenario{
	{"worst-peek", "a bundle of 51,200 events of 1 KB, in six drawers, is opened", measureWorstPeek},
	{"dequeue", "a bundle of 51,200 events and a bundle of a single event are confirmed", measureDequeue},
	{"save", "51,200 events are saved to a new recipient, and 10,000 at a time to one with waiting events", measureSave},
	{"price", "events are saved in batches of 125 and alone, delivered and removed: the request units per event", measurePrice},
	{"trickle", "single events are sent to many recipients, which fetch and confirm them: without payloads, with payloads, and with Session consistency", measureTrickle},
	{"busy", "single events are sent to one recipient, 1 to 2,000 per second, with and without tails", measureBusyRecipient},
	{"cold", "a new node saves an event for each of 1,000 recipients, for one with 8,000 events, and for three with events of 999 kinds", measureColdHeads},
	{"kinds", "events of 1 to 1,000 kinds are saved for one recipient, and again after 1,000 and 10,000 kinds were used and removed", measureKinds},
	{"drain", "100,000 events are fetched and confirmed in bundles of 2,000", measureDrain},
	{"growth", "128 events are saved, peeked and dequeued while up to a million events wait", measureGrowth},
	{"large-backlog", "single events are saved while up to 400,000 events wait in drawers of 100, which stand for 40 million in drawers of 10,000", measureLargeBacklog},
	{"year", "a recipient gets an event every 6 hours, and one every hour, for a year of simulated time", measureYear},
	{"repeating-peeks", "a bundle is confirmed while up to 32 clients repeat their Peek every 50 ms", measureRepeatingPeeks},
	{"many-actors", "1,000 recipients get 2,000 events/s in batches of 20; each peeks every 10 s and dequeues, for ten minutes", measureManyActors},
	{"hot-actor", "one recipient gets 90 % of 1,000 events/s, and a hundred others get the rest", measureHotActor},
	{"push", "events are published over HTTP and delivered to one receiver and to five, beside a hanging receiver, at 300 per second, and by a relay that stores nothing", measurePush},
	{"broker", "messages are broadcast to one consumer and to five, one by one, in a burst, and beside a hanging consumer", measureBroker},
	{"watches", "a document with 100,000 watches is changed, compared with a loop of the same calls, and 100 watched bundles per second are confirmed", measureWatches},
	{"ledger", "stores report objects over HTTP in messages of 10 to 100 events and one by one, to one node and to two; up to a million objects are listed, in pages of 100", measureObjectLedger},
	{"noisy-neighbour", "the partitions of one recipient are throttled, beside a hundred other recipients", measureNoisyNeighbour},
}

// Tokens returns a scenario that Scenarios does not list. It compares nodes and does not measure an
// account. It is a function, so that the linker drops the scenario's code from the program
// messagehub.
func Tokens() Scenario {
	return Scenario{"tokens", "a hub with tokens is compared with one without, with many actors and at the worst Peek; 10,000 forged tokens beside an honest actor; an unreachable issuer; a full listener", compareTokens}
}
