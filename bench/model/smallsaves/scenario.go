package smallsaves

import (
	"slices"
	"strings"
)

// A Scenario defines the jobs of two writers and the operations of two actors, the limits for
// faults, and the variant of the protocol.
//
// The batches of a writer are separated by slashes. A digit is an event: 1 to 4 belong to cabinet 0
// and 5 to 7 to cabinet 1. "L25" saves 2 and 5 as a large Save, "F" flushes and "X" sweeps. The
// operations of an actor are 1, a Peek, and 2, a Dequeue of the bundle that the actor received
// last.
//
// Setup has the steps before the start, separated by slashes: "S" and a batch, or "A" and
// operations.
type Scenario struct {
	Name    string
	Setup   string
	Writers [processes]string
	Actors  [processes]string

	Tail     uint8 // limit for the events of a tail; 0 means no small Saves
	Capacity uint8 // slots of a drawer; default 2
	Bundle   uint8 // limit for the events of a bundle; default 2

	Crashes, LostReplies, StaleReads uint8
	Versions                         int   // older versions that a stale read may return; default 1 with StaleReads
	Rollbacks                        uint8 // limit for the rollbacks of intents; default 2, or 0 with NoRollbacks
	NoRollbacks                      bool
	EagerFlushes                     uint8 // limit for the flushes that no Save needs

	TwoDomains bool
	InOrder    bool // bundles keep the order of the recipient across cabinets
	Payloads   bool // Saves store payloads before they write the head

	// With Fresh, a Dequeue reads a gate that is not stale, and deletes the entry of a sealed
	// drawer without a check of the entry's number.
	Fresh bool

	MergeCommits  bool // the write that commits a large Save also contains the next Save of the writer
	AnyEntry      bool // a Peek trusts any entry, as the protocol before small Saves did
	FlushEntries  bool // a flush writes an entry whenever one is due
	CountWhenLeft bool // a drawer is counted only when the head leaves it
	NoLateFlush   bool // a flush writes nothing after its drawer was closed

	// Lenient permits a 204 or 404 that results from a stale read. With Choice, a wrong choice of
	// cabinet is a violation even if a read was stale.
	Lenient, Choice bool

	// Leaks reports a page to which no document refers when the scenario has ended.
	Leaks bool

	without protocolRule // rules that the scenario omits
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
