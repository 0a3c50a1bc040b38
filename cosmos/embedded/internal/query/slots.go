package query

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// Slots hold the state of one evaluation of a query: the raw JSON of its aliases, keys,
// aggregates and paths, and the work done so far. See Query for the order of the values.
//
// Expressions return values, not errors, because few expressions can fail and they are evaluated
// for every document. Slots record a failure instead: evaluation stops, and its results are
// invalid.
type Slots struct {
	values [][]byte

	ctx     context.Context //nolint:containedctx // of the evaluation
	limits  Limits
	steps   int   // steps of the current document
	earlier int64 // steps of all earlier documents
	check   int   // value of steps at which ctx is checked next
	held    int64 // bytes that are retained from earlier documents
	failure error
}

// Limits bound one evaluation of a query; 0 means no limit. A step is an operator, an item of a
// list, a row, or some bytes of a value that is read or built, and takes about 10 to 50 ns.
type Limits struct {
	Document int   // steps for one document
	Steps    int64 // steps for all documents of a page
	Memory   int64 // bytes of results, keys and groups that are retained until the page is complete
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
	checkEvery     = 4096 // steps between two checks of the context
)

// NewSlots returns the slots of one evaluation, which stops when ctx ends.
func (q *Query) NewSlots(ctx context.Context, limits Limits) *Slots {
	return &Slots{values: make([][]byte, q.extra+q.extractor.Slots()), ctx: ctx, limits: limits, check: checkEvery}
}

// Failure returns the error that stopped the evaluation, or nil.
func (s *Slots) Failure() error { return s.failure }

// Exhausted reports whether the evaluation has reached the limit of Steps for one page. It is
// false without such a limit.
func (s *Slots) Exhausted() bool {
	return s.limits.Steps > 0 && s.earlier+int64(s.steps) >= s.limits.Steps
}

// RefuseIfExhausted records a failure if the evaluation is Exhausted. It is for queries that
// cannot continue on another page.
func (s *Slots) RefuseIfExhausted() {
	if s.Exhausted() {
		s.recordFailure(0, tooBusy)
	}
}

// recordFailure records a failure, unless there is an earlier one.
func (s *Slots) recordFailure(at int, reason string) {
	if s.failure == nil {
		s.failure = &Error{at, reason}
	}
}

// CountLookups counts n lookups in an index. They count toward the limit of the page, but not toward
// the limit of a document.
func (s *Slots) CountLookups(n int) { s.earlier += int64(n) * lookSteps }

// nextDocument starts the next document or group.
func (s *Slots) nextDocument() {
	s.earlier += int64(s.steps)
	s.steps, s.check = 0, checkEvery
}

// spendSteps counts steps. It returns false if evaluation must stop.
func (s *Slots) spendSteps(steps int) bool {
	if s.steps += steps; s.steps < s.check {
		return s.failure == nil
	}
	return s.checkLimits()
}

// spendMade counts the steps to build or convert n bytes.
func (s *Slots) spendMade(n int) bool { return s.spendSteps(1 + n/madePerStep) }

// spendRead counts the steps to scan n bytes.
func (s *Slots) spendRead(n int) bool { return s.spendSteps(1 + n/readPerStep) }

// spendCanonical counts the steps to write v in canonical form, which reads each level of
// nesting separately.
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

// parseValue parses the value in raw, and counts its length.
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

// Hold counts bytes that are retained until the page is complete, such as sort keys. It returns
// false if the bytes exceed the limit.
func (s *Slots) Hold(n int) bool {
	if s.held += int64(n); s.limits.Memory > 0 && s.held > s.limits.Memory {
		s.recordFailure(0, tooLarge)
	}
	return s.failure == nil
}
