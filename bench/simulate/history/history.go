package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// An Event is one that a client sends.
type Event struct {
	ID         string
	Cabinet    string // unique among all groups
	Group      string
	Bundleable bool
	Weight     int64  // KB
	Content    string // whatever else tells it from another with the same id; may be empty
}

// A Bundle is what a Peek has shown.
type Bundle struct {
	ID      string
	Group   string
	Cabinet string
	Events  []string // their ids, in order
	Body    string   // the body or a digest of it, which every Peek repeats; may be empty
}

// An Outcome is what became of an operation.
type Outcome int

// The outcomes. Whatever was neither carried out nor surely left undone is Unknown.
const (
	Unknown  Outcome = iota // no answer, or one that tells nothing; of any operation
	Accepted                // a Send
	Rejected                // a Send that stored nothing
	Shown                   // a Peek: a bundle
	None                    // a Peek: no data
	Done                    // a Dequeue
	NotFound                // a Dequeue
)

func (o Outcome) String() string {
	return [...]string{"unknown", "accepted", "rejected", "shown", "none", "done", "not found"}[o]
}

// A Tally says what became of the events of a Send.
type Tally struct{ Accepted, Duplicates, Conflicts int }

// An operation without an answer ends at forever; nothing happens at never.
const (
	forever = math.MaxInt64
	never   = math.MinInt64
)

type kind int

const (
	send kind = iota
	peek
	dequeue
)

// An operation is what one client asked for, and what it was answered.
type operation struct {
	kind       kind
	client     int
	call, done int64

	events []Event  // of a Send
	groups []string // of a Peek; none means all
	id     string   // of a Dequeue

	outcome Outcome
	bundle  Bundle // that a Peek has shown
	tally   *Tally // of a Send, if it was told
}

// A Recorder notes the operations of clients on one mailbox. It is safe for
// concurrent use. Its caller says what time it is: any counter that never goes
// back. Operations of which one ends at the time at which another begins count as
// concurrent.
//
// Every method that begins an operation returns a function that ends it, to be
// called at most once. An operation that was never ended has an Unknown outcome.
type Recorder struct {
	mu         sync.Mutex
	operations []*operation
}

// Send notes that a client sends events.
func (r *Recorder) Send(client int, at int64, events ...Event) (end func(at int64, o Outcome)) {
	op := r.beginOperation(&operation{kind: send, client: client, call: at, events: slices.Clone(events)})
	return func(at int64, o Outcome) { r.endOperation(op, at, o, Accepted, Rejected) }
}

// SendCounted is like Send, for a client that is told what became of the events:
// with Accepted comes a Tally, with every other outcome none.
func (r *Recorder) SendCounted(client int, at int64, events ...Event) (end func(at int64, o Outcome, t Tally)) {
	op := r.beginOperation(&operation{kind: send, client: client, call: at, events: slices.Clone(events)})
	return func(at int64, o Outcome, t Tally) {
		if o == Accepted {
			op.tally = &t
		}
		r.endOperation(op, at, o, Accepted, Rejected)
	}
}

// Peek notes that a client asks for a bundle of groups; none means all. With the
// outcome Shown comes the bundle, with every other the zero Bundle.
func (r *Recorder) Peek(client int, at int64, groups ...string) (end func(at int64, o Outcome, b Bundle)) {
	op := r.beginOperation(&operation{kind: peek, client: client, call: at, groups: slices.Clone(groups)})
	return func(at int64, o Outcome, b Bundle) {
		op.bundle = b
		r.endOperation(op, at, o, Shown, None)
	}
}

// Dequeue notes that a client confirms a bundle.
func (r *Recorder) Dequeue(client int, at int64, bundle string) (end func(at int64, o Outcome)) {
	op := r.beginOperation(&operation{kind: dequeue, client: client, call: at, id: bundle})
	return func(at int64, o Outcome) { r.endOperation(op, at, o, Done, NotFound) }
}

func (r *Recorder) beginOperation(op *operation) *operation {
	op.done = forever
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, op)
	return op
}

func (r *Recorder) endOperation(op *operation, at int64, o Outcome, known ...Outcome) {
	if o != Unknown && !slices.Contains(known, o) {
		panic(fmt.Sprintf("history: %s is no outcome of operation %s", o, op))
	}
	if at < op.call {
		panic(fmt.Sprintf("history: operation %s ends at %d, before it began", op, at))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	op.outcome = o
	if o != Unknown {
		op.done = at
	}
}

// History returns what was noted so far. No operation may end while it runs or
// after it, lest the history change while it is looked at.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return History{slices.Clone(r.operations)}
}

// A History is what clients saw of one mailbox.
type History struct{ operations []*operation }

// Len returns the number of operations.
func (h History) Len() int { return len(h.operations) }

// String returns a line for each operation, in the order in which they began.
func (h History) String() string {
	var b strings.Builder
	for _, op := range h.operations {
		fmt.Fprintln(&b, op)
	}
	return b.String()
}

func (op *operation) String() string {
	span := fmt.Sprintf("%d-%d", op.call, op.done)
	if op.done == forever {
		span = fmt.Sprintf("%d-", op.call)
	}
	var asked, answered string
	switch op.kind {
	case send:
		ids := make([]string, len(op.events))
		for i, e := range op.events {
			ids[i] = e.ID + " in " + e.Cabinet
		}
		asked = "send " + strings.Join(ids, ", ")
		if op.tally != nil {
			answered = fmt.Sprintf(" (%d new, %d duplicates, %d conflicts)", op.tally.Accepted, op.tally.Duplicates, op.tally.Conflicts)
		}
	case peek:
		asked = strings.TrimSpace("peek " + strings.Join(op.groups, ", "))
		if op.outcome == Shown {
			answered = fmt.Sprintf(" %s of %s: %s", op.bundle.ID, op.bundle.Cabinet, strings.Join(op.bundle.Events, ", "))
		}
	case dequeue:
		asked = "dequeue " + op.id
	}
	return fmt.Sprintf("client %d, %s: %s: %s%s", op.client, span, asked, op.outcome, answered)
}
