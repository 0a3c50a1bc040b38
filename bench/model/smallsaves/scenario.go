package smallsaves

import (
	"slices"
	"strings"
)

// A Scenario says what two writers and two actors do, how many faults there may be,
// and which variant of the protocol they follow.
//
// A writer's batches are separated by a slash. A digit is an event: 1 to 4 belong to
// cabinet 0 and 5 to 7 to cabinet 1. "L25" saves 2 and 5 as a large Save, "F" flushes and
// "X" sweeps. An actor's operations are 1, a Peek, and 2, a Dequeue of the bundle that it got
// last. Before the start come the steps of Setup, separated by a slash: "S" and a batch, or
// "A" and operations.
type Scenario struct {
	Name    string
	Setup   string
	Writers [processes]string
	Actors  [processes]string

	Tail     uint8 // limit for the events of a tail; 0: no small Saves
	Capacity uint8 // of a drawer; default 2
	Bundle   uint8 // limit for the events of a bundle; default 2

	Crashes, LostReplies, StaleReads uint8
	Versions                         int   // older versions that a stale read may return; default 1 with StaleReads
	Rollbacks                        uint8 // rollbacks of intents; default 2, none if NoRollbacks
	NoRollbacks                      bool
	EagerFlushes                     uint8 // flushes that no Save needs

	TwoDomains bool
	InOrder    bool // bundles keep the order of the recipient over cabinets
	Payloads   bool // Saves put payloads before they write the head

	// Fresh: a Dequeue decides on a gate that is not stale, and deletes the
	// entry of a sealed drawer with any number.
	Fresh bool

	MergeCommits  bool // the commit of a large Save carries the next Save of its writer
	AnyEntry      bool // a Peek trusts any entry, as it did before small Saves
	FlushEntries  bool // a flush writes an entry whenever one is due
	CountWhenLeft bool // a drawer is counted only when the head leaves it
	NoLateFlush   bool // a flush writes nothing after its drawer was closed

	// Lenient permits a 204 or 404 that is the result of a stale read. Choice reports a
	// wrong choice of cabinet even then.
	Lenient, Choice bool

	// Leaks reports a page that no document refers to at an end of the
	// scenario.
	Leaks bool

	without protocolRule // rules that the scenario leaves out
}

// A job is one batch of a writer.
type job struct {
	events              []uint8
	large, flush, sweep bool
}

func (j *job) has(event uint8) bool { return slices.Contains(j.events, event) }

func parseJob(text string) (j job) {
	for _, letter := range []byte(text) {
		switch letter {
		case 'L':
			j.large = true
		case 'F':
			j.flush = true
		case 'X':
			j.sweep = true
		default:
			j.events = append(j.events, letter-'0')
		}
	}
	return j
}

func parseJobs(text string) (jobs []job) {
	if text == "" {
		return nil
	}
	for batch := range strings.SplitSeq(text, "/") {
		jobs = append(jobs, parseJob(batch))
	}
	return jobs
}

func parseOperations(text string) (operations []uint8) {
	for _, letter := range []byte(text) {
		operations = append(operations, letter-'0')
	}
	return operations
}

// The operations of an actor.
const (
	peekOperation    = 1
	dequeueOperation = 2
)

// cabinetOf returns the cabinet that an event belongs to.
func cabinetOf(event uint8) int {
	if event < 5 {
		return 0
	}
	return 1
}
