package query

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// Slots hold everything that changes while a query runs: the raw JSON of its
// aliases, keys, aggregates and paths, and the work that the run has done. They
// belong to one run; see Query for the order of the values.
//
// Expressions return values, not errors, because nearly none of them can fail
// and they are evaluated for every document. A failure is kept here instead:
// evaluation stops, and the results of the run are void.
type Slots struct {
	values [][]byte

	ctx     context.Context //nolint:containedctx // that of the run, which lasts as long as the slots
	limits  Limits
	steps   int   // of the current document
	earlier int64 // steps of the documents before it
	check   int   // the number of steps at which ctx is looked at again
	held    int64 // bytes that the run keeps from one document to the next
	failure error
}

// Limits bound one run of a query; 0 is no limit. A step is an operator, an item of a list, a
// row, or some bytes of a value that is read or made: about 10 to 50 ns.
type Limits struct {
	Document int   // steps for one document
	Steps    int64 // steps for all documents of a page
	Memory   int64 // bytes of the results, keys and groups that a page keeps
}

// DefaultLimits let one document take a fraction of a second and one page a few
// seconds, as the service does.
var DefaultLimits = Limits{Document: 2_000_000, Steps: 50_000_000, Memory: 128 << 20}

const (
	tooMany   = "the cardinality of a scalar subquery result set cannot be greater than one"
	tooLong   = "the query takes too long: its joins, subqueries and functions do too much work for one document"
	tooBusy   = "the query takes too long: its results need all documents at once, and they are too many for what it does with each; select fewer documents, or simplify its expressions"
	tooLarge  = "the query needs too much memory: its results need all documents at once; select fewer documents, or less of each"
	badRegex  = "the regular expression is not supported"
	wideRegex = "the regular expression is too large"

	madePerStep    = 16 // bytes
	copiedPerStep  = 256
	readPerStep    = 64
	lookSteps      = 10
	elementPerStep = 4
	callSteps      = 8
	checkEvery     = 4096 // steps between two looks at the context
)

// NewSlots returns the slots of a run, which ends early when ctx does.
func (q *Query) NewSlots(ctx context.Context, limits Limits) *Slots {
	return &Slots{values: make([][]byte, q.extra+q.extractor.Slots()), ctx: ctx, limits: limits, check: checkEvery}
}

// Failure says why evaluation stopped; nil for nearly every run.
func (s *Slots) Failure() error { return s.failure }

// Exhausted reports whether the run has done the work of one page. It returns
// false if the limits have no Steps.
func (s *Slots) Exhausted() bool {
	return s.limits.Steps > 0 && s.earlier+int64(s.steps) >= s.limits.Steps
}

// RefuseIfExhausted fails a run that has done the work of one page and cannot
// continue on another.
func (s *Slots) RefuseIfExhausted() {
	if s.Exhausted() {
		s.recordFailure(0, tooBusy)
	}
}

// recordFailure keeps the first failure.
func (s *Slots) recordFailure(at int, reason string) {
	if s.failure == nil {
		s.failure = &Error{at, reason}
	}
}

// CountLookups counts n look-ups in an index, which are not work for a document.
func (s *Slots) CountLookups(n int) { s.earlier += int64(n) * lookSteps }

// nextDocument begins another document or group.
func (s *Slots) nextDocument() {
	s.earlier += int64(s.steps)
	s.steps, s.check = 0, checkEvery
}

// spendSteps counts steps. It returns false if evaluation has to stop.
func (s *Slots) spendSteps(steps int) bool {
	if s.steps += steps; s.steps < s.check {
		return s.failure == nil
	}
	return s.checkLimits()
}

// spendMade counts the steps to make or convert n bytes.
func (s *Slots) spendMade(n int) bool { return s.spendSteps(1 + n/madePerStep) }

// spendRead counts the steps to scan n bytes.
func (s *Slots) spendRead(n int) bool { return s.spendSteps(1 + n/readPerStep) }

// spendCanonical counts the steps to write v in canonical form, which reads each
// level of nesting again.
func (s *Slots) spendCanonical(v Value) bool { return s.spendSteps(canonicalSteps(v)) }

func canonicalSteps(v Value) int {
	if v.Kind < Array {
		return 1 + len(v.Text)/madePerStep
	}
	return 1 + len(v.Text)/madePerStep*(1+rawjson.Depth(v.Text))
}

// spendCompare counts the steps to compare two arrays or objects.
func (s *Slots) spendCompare(a, b Value) {
	s.spendSteps(canonicalSteps(a) + canonicalSteps(b))
}

// parseValue reads the value in raw, which may be long.
func (s *Slots) parseValue(raw []byte) Value {
	if len(raw) >= readPerStep {
		s.spendSteps(len(raw) / readPerStep)
	}
	return ParseValue(raw)
}

func (s *Slots) checkLimits() bool {
	s.check = s.steps + checkEvery
	if s.limits.Document > 0 && s.steps > s.limits.Document {
		s.recordFailure(0, tooLong)
	}
	if err := s.ctx.Err(); err != nil && s.failure == nil {
		s.failure = err
	}
	return s.failure == nil
}

// Hold counts bytes that are kept until the page is complete, such as keys to sort
// by. It returns false if they are too many.
func (s *Slots) Hold(n int) bool {
	if s.held += int64(n); s.limits.Memory > 0 && s.held > s.limits.Memory {
		s.recordFailure(0, tooLarge)
	}
	return s.failure == nil
}
