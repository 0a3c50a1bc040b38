package simulate

import "fmt"

// Sometimes counts how often states were reached that are rare, and that the
// protocols are made for. A campaign that never reaches one of them has proved
// nothing about it, and fails.
type sometimes map[string]int

// rare are the states.
var rare = []string{
	"a bundle that an operator had taken back was to be confirmed",
	"a bundle that was confirmed was handed out again by an operator",
	"a bundle was skipped",
	"a notice came twice",
	"a queue was frozen",
	"an order was given whose answer was lost",
	"a request met a frozen queue",
	"a check was made while the hub ran",
	"a sweep removed what was acknowledged",
	"a sweep changed a head of which a Save did not know whether it was its own",
	"an intent of another process was rolled back",
	"a commit was carried out, and its answer was lost",
	"a 409 or 412 that was one's own doing",
	"a 409 or 412 that was another's doing",
	"a bundle that was computed from what is no longer so was refused",
	"two hubs raced for one gate",
	"a Dequeue was carried out, and its answer was lost",
	"a hub died between a Dequeue and its hints",
	"a catalog entry was raised on sight",
	"a catalog entry was put back on sight",
	"a catalog entry was deleted on sight",
	"a drawer was sealed by a reader",
	"an open bundle was handed out again",
	"an open bundle was handed out again by another hub",
	"events were sent again after they were accepted",
	"a request was carried out after its sender had given up",
	"a hub was killed",
	"a hub was told to stop, and started again",
	"a hub was paused",
	"a hub lost its listener",
	"a hub could not start",
	"a write of a dead hub arrived",
	"a clock jumped",
	"the bus dropped its connections",
	"a domain was told that it could not send",
	"a domain did not know whether the bus has its events",
	"a domain died while it sent",
	"an event came with other content, over the bus",
	"an event came with other content, over HTTP",
	"events were sent again over the bus",
	"a message was poison",
	"a Peek was told that the domain has failed",
	"a Peek was told that the domain has not answered",
	"a domain died while it made content",
	"a domain could not make content",
	"a domain panicked",
	"a domain was slow with its content",
	"a domain did not take a notice",
	"the account throttled everybody for a while",
	"one partition was throttled for a while",
	"a client gave up a request",
	"a hub had wrong settings",
	"an account refused everybody for a while",
	"a queue was not what it should be",
	"a caller was told that there are too many",
	"a caller was told that it is too much",
	"the bus was away for a while",
	"a content was replaced while it was read",
	"a message was one that nobody can read",
	"something was damaged",
	"a domain gave a wrong answer",
	"an answer was that something is damaged",
	"a check has named damage",
	"a hub called a receiver by a connection of its own",
	"a sweep removed a cabinet",
	"a removed cabinet was used again",
	"a gate forgot a removed cabinet",
	"a tail was flushed",
	"two hubs flushed one tail",
	"a hub read the filter of a recipient",
	"a small Save was carried out, and its answer was lost",
	"a small Save was refused, because another hub had saved",
	"a hub died between the page of a flush and its head",
	"a segment of a stream was sealed",
	"a delivery became a dead letter",
	"a cursor was taken over",
	"a delivery that had ended its nodes became a dead letter",
	"two nodes shared the shards",
	"a settlement of a node that had lost its cursor was refused",
	"a settlement was carried out, and its answer was lost",
	"a node was killed while it called",
	"a node was paused while it called",
	"a receiver hung until the deadline",
	"a replay was requested",
	"a dead letter was replayed",
	"a page of watches was served",
	"a watch was unlisted",
	"a replay of a range has made deliveries again",
	"a receiver asked to be called later",
	"a receiver redirected a call",
	"a receiver reset a connection",
	"a receiver sent more than is read",
	"a receiver answered slowly, byte by byte",
	"a message was sent again after its outcome was not known",
	"a consumer was put while messages were sent",
	"a broadcast was repeated by its producer id",
	"a bundle was fetched while calls were under way",
	"a bundle was fetched again",
	"a bundle was dequeued twice",
	"a dead job was re-triggered",
	"a token was refused, because it had been replaced",
	"a message was re-triggered",
	"a subscription was changed while events were published",
	"a subscription was paused while events were published",
	"a subscription was retired",
	"an ordered subscription was called",
	"an event of a topic came with other content",
	"a watched document was changed",
	"a resource was changed while a watch of it was created",
	"a watch was deleted whose notifications were outstanding",
	"a watch was stored without its cursor",
	"a watched bundle was dequeued",
	"a watched bundle was dequeued again after a replay",
	"a receiver redirected a call to itself",
}

func newSometimes() sometimes {
	s := make(sometimes)
	for _, what := range rare {
		s[what] = 0
	}
	return s
}

// reached counts one.
func (s sometimes) reached(what string) {
	if _, ok := s[what]; !ok {
		panic(fmt.Sprintf("%q is no rare state that anybody waits for", what))
	}
	s[what]++
}
