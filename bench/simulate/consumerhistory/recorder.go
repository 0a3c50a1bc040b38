// Package consumerhistory checks whether a hub that does one thing at a time could have given the answers that
// one consumer of a channel has got by its two doors: calls, and bundles that it fetches.
//
// A [Recorder] notes when each operation began and ended. [Recorder.Check] has porcupine look for an
// order of the operations in which each takes effect at one moment between the two, and in which
//
//   - a consumer is called with no message of a bundle, neither before nor after its Dequeue,
//   - a bundle has no message that a call has delivered or that another bundle had,
//   - one bundle is open at most, it is the same until it is dequeued, and it is not fetched after that,
//   - a bundle that was fetched is not unknown while it is open, and is dequeued in the end.
//
// Calls whose results are lost with their node say nothing, and are not noted: their messages may come
// by both doors.
package consumerhistory

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/anishathalye/porcupine"
)

// An Outcome is the result of a Dequeue.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota
	Done
	NotFound
)

type operationKind int

const (
	call operationKind = iota
	peek
	dequeue
	end
)

// An operation is one of a client, or a call by a node.
type operation struct {
	kind         operationKind
	client       int
	began, ended int64
	entries      []string // of a call: one; of a Peek: those of the bundle
	bundle       string   // of a Peek or a Dequeue; "" of a Peek that has found none
	isDelivered  bool     // of a call
	outcome      Outcome  // of a Dequeue
}

// A Recorder notes the operations of one consumer. It is safe for concurrent use. Its times are those
// of any counter.
type Recorder struct {
	mu         sync.Mutex
	operations []operation
}

// Call notes a call with an entry, which has delivered it or failed.
func (r *Recorder) Call(began, ended int64, entry string, isDelivered bool) {
	r.addOperation(operation{kind: call, client: -1, began: began, ended: ended, entries: []string{entry}, isDelivered: isDelivered})
}

// Peek notes that a client has got a bundle, or "" if the answer was that nothing waits.
func (r *Recorder) Peek(client int, began, ended int64, bundle string, entries []string) {
	r.addOperation(operation{kind: peek, client: client, began: began, ended: ended, bundle: bundle, entries: entries})
}

// Dequeue notes that a client has dequeued a bundle.
func (r *Recorder) Dequeue(client int, began, ended int64, bundle string, outcome Outcome) {
	if outcome == Unknown {
		ended = math.MaxInt64 // it may take effect later
	}
	r.addOperation(operation{kind: dequeue, client: client, began: began, ended: ended, bundle: bundle, outcome: outcome})
}

func (r *Recorder) addOperation(o operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, o)
}

// Options say how a history is checked.
type Options struct {
	StaleReads bool // a Peek that finds no bundle proves nothing
	Limit      int  // for the operations of a history that is checked; default 200
	Steps      int  // limit for the search; default 100,000
}

// A Verdict is the result of a check.
type Verdict int

// The verdicts. GaveUp is a failure.
const (
	GaveUp  Verdict = iota // the search was too long, so it has shown nothing
	Skipped                // the consumer has got no bundle, or has too many operations
	Legal
	Illegal
)

// Check looks for an order of the operations that ended, as of time at.
func (r *Recorder) Check(at int64, opts Options) Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	bundled := make(map[string]bool)
	for i := range r.operations {
		if o := &r.operations[i]; o.kind == peek {
			for _, e := range o.entries {
				bundled[e] = true
			}
		}
	}
	history := []porcupine.Operation{{Input: &operation{kind: end}, Call: at, Return: at}}
	for i := range r.operations {
		o := &r.operations[i]
		if o.kind == call && !bundled[o.entries[0]] || o.kind == peek && o.bundle == "" && opts.StaleReads {
			continue // it cannot contradict anything
		}
		history = append(history, porcupine.Operation{ClientId: o.client, Input: o, Call: o.began, Return: o.ended})
	}
	if len(bundled) == 0 || len(history) > cmp.Or(opts.Limit, 200) {
		return Skipped
	}
	left := cmp.Or(opts.Steps, 100_000)
	m := porcupine.Model{
		Init: func() any { return consumerState{} },
		Step: func(state, input, _ any) (bool, any) {
			if left == 0 {
				return false, state
			}
			left--
			return state.(consumerState).applyOperation(input.(*operation))
		},
		Equal: func(a, b any) bool { return a.(consumerState).isEqual(b.(consumerState)) },
	}
	isLegal := porcupine.CheckOperations(m, history)
	switch {
	case left == 0:
		return GaveUp
	case isLegal:
		return Legal
	}
	return Illegal
}

// A consumerState is the state of one. It is not changed.
type consumerState struct {
	open    *operation   // the Peek that has opened the bundle that is open; nil: none is
	bundles []*operation // the Peeks that have opened bundles, in order
	given   []string     // entries that calls have delivered, in order
}

func (c consumerState) isEqual(d consumerState) bool {
	return c.open == d.open && slices.Equal(c.bundles, d.bundles) && slices.Equal(c.given, d.given)
}

// applyOperation returns the consumer after an operation, and false if that could not be.
func (c consumerState) applyOperation(o *operation) (bool, consumerState) {
	switch o.kind {
	case call:
		if c.isBundled(o.entries[0]) {
			return false, c
		}
		if at, isGiven := slices.BinarySearch(c.given, o.entries[0]); o.isDelivered && !isGiven {
			c.given = slices.Insert(slices.Clone(c.given), at, o.entries[0])
		}
		return true, c
	case peek:
		return c.applyPeek(o)
	case dequeue:
		return c.applyDequeue(o)
	case end:
	}
	return c.open == nil, c
}

func (c consumerState) applyPeek(o *operation) (bool, consumerState) {
	switch {
	case o.bundle == "":
		return c.open == nil, c
	case c.open != nil:
		return c.open.bundle == o.bundle && slices.Equal(c.open.entries, o.entries), c
	}
	isNew := !slices.ContainsFunc(c.bundles, func(b *operation) bool { return b.bundle == o.bundle })
	for _, e := range o.entries {
		isNew = isNew && !slices.Contains(c.given, e) && !c.isBundled(e)
	}
	c.open, c.bundles = o, append(slices.Clip(c.bundles), o)
	return isNew, c
}

func (c consumerState) applyDequeue(o *operation) (bool, consumerState) {
	isOpen := c.open != nil && c.open.bundle == o.bundle
	wasOpen := slices.ContainsFunc(c.bundles, func(b *operation) bool { return b.bundle == o.bundle })
	if isOpen && o.outcome != NotFound {
		c.open = nil
	}
	switch o.outcome {
	case Done:
		return wasOpen, c
	case NotFound: // one that was dequeued long ago is forgotten
		return !isOpen, c
	default:
		return true, c
	}
}

func (c consumerState) isBundled(entry string) bool {
	return slices.ContainsFunc(c.bundles, func(b *operation) bool { return slices.Contains(b.entries, entry) })
}

// String returns a line for each operation, in the order in which they were noted.
func (r *Recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for i := range r.operations {
		b.WriteString(r.operations[i].String() + "\n")
	}
	return b.String()
}
