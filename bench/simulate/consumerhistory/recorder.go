// Package consumerhistory checks whether a hub that executes one operation at a time could have delivered what one
// consumer of a channel received, by calls and in fetched bundles.
//
// A [Recorder] records when each operation began and ended. [Recorder.Check] uses porcupine to search for an order of
// the operations in which each operation takes effect at one moment between its beginning and its end, and in which
//
//   - no call delivers a message of a bundle, neither before nor after the Dequeue of the bundle,
//   - no bundle contains a message that a call delivered or that another bundle contained,
//   - at most one bundle is open; it stays the same until it is dequeued, and is not fetched after its Dequeue,
//   - a fetched bundle can be dequeued while it is open, and is dequeued at the end.
//
// A call whose result was lost when its node died is not recorded, because the message of that call may be delivered
// again, by a call or in a bundle.
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

// A consumerOperation is a request of a client, or a call by a node.
type consumerOperation struct {
	kind         operationKind
	client       int
	began, ended int64
	entries      []string // entry of the call, or entries of the bundle that the Peek returned
	bundle       string   // bundle of the Peek or the Dequeue; "" if a Peek returned no bundle
	isDelivered  bool     // true if the call delivered its entry
	outcome      Outcome  // outcome of the Dequeue
}

// A Recorder records the operations of one consumer. It is safe for concurrent use. The times may come from any
// increasing counter.
type Recorder struct {
	mu         sync.Mutex
	operations []consumerOperation
}

// Call records a call with one entry. isDelivered is false if the call failed.
func (r *Recorder) Call(began, ended int64, entry string, isDelivered bool) {
	r.addOperation(consumerOperation{kind: call, client: -1, began: began, ended: ended, entries: []string{entry}, isDelivered: isDelivered})
}

// Peek records that a client received a bundle. bundle is "" if no messages were waiting.
func (r *Recorder) Peek(client int, began, ended int64, bundle string, entries []string) {
	r.addOperation(consumerOperation{kind: peek, client: client, began: began, ended: ended, bundle: bundle, entries: entries})
}

// Dequeue records a client's Dequeue of a bundle and its outcome.
func (r *Recorder) Dequeue(client int, began, ended int64, bundle string, outcome Outcome) {
	if outcome == Unknown {
		ended = math.MaxInt64 // the Dequeue may take effect later
	}
	r.addOperation(consumerOperation{kind: dequeue, client: client, began: began, ended: ended, bundle: bundle, outcome: outcome})
}

func (r *Recorder) addOperation(o consumerOperation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, o)
}

// Options say how a history is checked.
type Options struct {
	StaleReads bool // ignore each Peek that found no bundle, because it may have read stale documents
	Limit      int  // maximum number of operations in a history; longer histories are skipped; default 200
	Steps      int  // maximum number of steps of the search; default 100,000
}

// A Verdict is the result of a check.
type Verdict int

// The verdicts. Callers treat GaveUp as a failure.
const (
	GaveUp  Verdict = iota // the search reached its limit, so the result is inconclusive
	Skipped                // the consumer received no bundle, or has too many operations
	Legal
	Illegal
)

// Check searches for an order of the operations up to time at; see the package comment.
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
	history := []porcupine.Operation{{Input: &consumerOperation{kind: end}, Call: at, Return: at}}
	for i := range r.operations {
		o := &r.operations[i]
		if o.kind == call && !bundled[o.entries[0]] || o.kind == peek && o.bundle == "" && opts.StaleReads {
			continue // this operation is consistent with every order
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
			return state.(consumerState).applyOperation(input.(*consumerOperation))
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

// A consumerState is the state of the consumer after some operations. It is immutable.
type consumerState struct {
	open      *consumerOperation   // the Peek that opened the open bundle; nil if no bundle is open
	bundles   []*consumerOperation // the Peeks that opened bundles, in order
	delivered []string             // entries that calls delivered, sorted
}

func (c consumerState) isEqual(d consumerState) bool {
	return c.open == d.open && slices.Equal(c.bundles, d.bundles) && slices.Equal(c.delivered, d.delivered)
}

// applyOperation returns the state after operation o, or false if o is impossible in state c.
func (c consumerState) applyOperation(o *consumerOperation) (bool, consumerState) {
	switch o.kind {
	case call:
		if c.isBundled(o.entries[0]) {
			return false, c
		}
		if at, isKnown := slices.BinarySearch(c.delivered, o.entries[0]); o.isDelivered && !isKnown {
			c.delivered = slices.Insert(slices.Clone(c.delivered), at, o.entries[0])
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

func (c consumerState) applyPeek(o *consumerOperation) (bool, consumerState) {
	switch {
	case o.bundle == "":
		return c.open == nil, c
	case c.open != nil:
		return c.open.bundle == o.bundle && slices.Equal(c.open.entries, o.entries), c
	}
	isNew := !slices.ContainsFunc(c.bundles, func(b *consumerOperation) bool { return b.bundle == o.bundle })
	for _, e := range o.entries {
		isNew = isNew && !slices.Contains(c.delivered, e) && !c.isBundled(e)
	}
	c.open, c.bundles = o, append(slices.Clip(c.bundles), o)
	return isNew, c
}

func (c consumerState) applyDequeue(o *consumerOperation) (bool, consumerState) {
	isOpen := c.open != nil && c.open.bundle == o.bundle
	wasOpen := slices.ContainsFunc(c.bundles, func(b *consumerOperation) bool { return b.bundle == o.bundle })
	if isOpen && o.outcome != NotFound {
		c.open = nil
	}
	switch o.outcome {
	case Done:
		return wasOpen, c
	case NotFound: // a hub removes dequeued bundles after some time, so NotFound is possible for them
		return !isOpen, c
	default:
		return true, c
	}
}

func (c consumerState) isBundled(entry string) bool {
	return slices.ContainsFunc(c.bundles, func(b *consumerOperation) bool { return slices.Contains(b.entries, entry) })
}

// String returns a line for each operation, in the order in which the operations were recorded.
func (r *Recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for i := range r.operations {
		b.WriteString(r.operations[i].String() + "\n")
	}
	return b.String()
}
