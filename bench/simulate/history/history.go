package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// An Event is an event that a client sends.
type Event struct {
	ID         string
	Cabinet    string // name that is unique among all groups
	Group      string
	Bundleable bool
	Weight     int64  // in KB
	Content    string // content that distinguishes events with the same id; may be empty
}

// A Bundle is a bundle that a Peek returned.
type Bundle struct {
	ID      string
	Group   string
	Cabinet string
	Events  []string // event ids, in order
	Body    string   // body or its digest, equal for every Peek of the bundle; may be empty
}

// An Outcome is the outcome of an operation.
type Outcome int

// The outcomes of operations.
const (
	Unknown  Outcome = iota // any operation without an answer, or with an inconclusive answer
	Accepted                // a Send that stored its new events
	Rejected                // a Send that stored nothing
	Returned                // a Peek returned a bundle
	None                    // a Peek returned no data
	Done                    // a Dequeue
	NotFound                // a Dequeue
)

func (o Outcome) String() string {
	return [...]string{"unknown", "accepted", "rejected", "shown", "none", "done", "not found"}[o]
}

// A Tally counts the events of a Send by outcome.
type Tally struct{ Accepted, Duplicates, Conflicts int }

// An operation without an answer ends at forever. All recorded times are after never.
const (
	forever = math.MaxInt64
	never   = math.MinInt64
)

type operationKind int

const (
	send operationKind = iota
	peek
	dequeue
)

// A mailboxOperation is a request of a client and its answer.
type mailboxOperation struct {
	kind       operationKind
	client     int
	call, done int64

	events []Event  // events of a Send
	groups []string // groups that a Peek requests; empty means all groups
	id     string   // bundle id of a Dequeue

	outcome Outcome
	bundle  Bundle // bundle that a Peek returned
	tally   *Tally // counts in the answer to a Send, or nil
}

// A Recorder records the operations of clients on one mailbox. It is safe for concurrent use. Its callers pass the
// time, which may be any counter that never decreases. If an operation ends at the time at which a second one begins,
// the two are concurrent.
//
// Every method that begins an operation returns a function that ends the operation. The function may be called at most
// once. An operation that was never ended has an Unknown outcome.
type Recorder struct {
	mu         sync.Mutex
	operations []*mailboxOperation
}

// Send records that a client sends events.
func (r *Recorder) Send(client int, at int64, events ...Event) (end func(at int64, o Outcome)) {
	op := r.beginOperation(&mailboxOperation{kind: send, client: client, call: at, events: slices.Clone(events)})
	return func(at int64, o Outcome) { r.endOperation(op, at, o, Accepted, Rejected) }
}

// SendCounted is like Send, for a client that receives counts in the answer. The Tally is ignored unless the outcome is
// Accepted.
func (r *Recorder) SendCounted(client int, at int64, events ...Event) (end func(at int64, o Outcome, t Tally)) {
	op := r.beginOperation(&mailboxOperation{kind: send, client: client, call: at, events: slices.Clone(events)})
	return func(at int64, o Outcome, t Tally) {
		if o == Accepted {
			op.tally = &t
		}
		r.endOperation(op, at, o, Accepted, Rejected)
	}
}

// Peek records that a client requests a bundle of some groups, or of all groups if none is given. The caller of end
// passes the bundle with the outcome Returned, and the zero Bundle with any other outcome.
func (r *Recorder) Peek(client int, at int64, groups ...string) (end func(at int64, o Outcome, b Bundle)) {
	op := r.beginOperation(&mailboxOperation{kind: peek, client: client, call: at, groups: slices.Clone(groups)})
	return func(at int64, o Outcome, b Bundle) {
		op.bundle = b
		r.endOperation(op, at, o, Returned, None)
	}
}

// Dequeue records that a client confirms a bundle.
func (r *Recorder) Dequeue(client int, at int64, bundle string) (end func(at int64, o Outcome)) {
	op := r.beginOperation(&mailboxOperation{kind: dequeue, client: client, call: at, id: bundle})
	return func(at int64, o Outcome) { r.endOperation(op, at, o, Done, NotFound) }
}

func (r *Recorder) beginOperation(op *mailboxOperation) *mailboxOperation {
	op.done = forever
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, op)
	return op
}

func (r *Recorder) endOperation(op *mailboxOperation, at int64, o Outcome, known ...Outcome) {
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

// History returns the operations so far. No operation may end during or after the call, because that would change the
// returned history.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return History{slices.Clone(r.operations)}
}

// A History is the list of the operations of clients on one mailbox.
type History struct{ operations []*mailboxOperation }

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

func (op *mailboxOperation) String() string {
	span := fmt.Sprintf("%d-%d", op.call, op.done)
	if op.done == forever {
		span = fmt.Sprintf("%d-", op.call)
	}
	var request, answered string
	switch op.kind {
	case send:
		ids := make([]string, len(op.events))
		for i, e := range op.events {
			ids[i] = e.ID + " in " + e.Cabinet
		}
		request = "send " + strings.Join(ids, ", ")
		if op.tally != nil {
			answered = fmt.Sprintf(" (%d new, %d duplicates, %d conflicts)", op.tally.Accepted, op.tally.Duplicates, op.tally.Conflicts)
		}
	case peek:
		request = strings.TrimSpace("peek " + strings.Join(op.groups, ", "))
		if op.outcome == Returned {
			answered = fmt.Sprintf(" %s of %s: %s", op.bundle.ID, op.bundle.Cabinet, strings.Join(op.bundle.Events, ", "))
		}
	case dequeue:
		request = "dequeue " + op.id
	}
	return fmt.Sprintf("client %d, %s: %s: %s%s", op.client, span, request, op.outcome, answered)
}
