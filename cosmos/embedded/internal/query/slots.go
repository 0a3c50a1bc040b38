package query

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// Slots are the state of an evaluation: the raw JSON of aliases, keys, aggregates and paths, and the work done. See
// Query for their order. Expressions return no errors, because few can fail and they are evaluated for every document.
// A failure is recorded in Slots, stops the evaluation, and makes the results invalid.
type Slots struct {
	values [][]byte

	ctx     context.Context //nolint:containedctx // of the evaluation
	limits  Limits
	steps   int   // steps for the current document
	earlier int64 // steps for earlier documents
	check   int   // value of steps at which ctx must be checked
	held    int64 // bytes retained for the page
	failure error
}

// Limits limit one evaluation of a query; 0 means no limit. A step takes about 10 to 50 ns: it is an operator, a list
// item, a row, or some bytes of a value.
type Limits struct {
	Document int   // maximum steps for one document
	Steps    int64 // maximum steps for all documents of a page
	Memory   int64 // maximum bytes of results, keys and groups that are retained for a page
}

// DefaultLimits allow a fraction of a second per document and a few seconds per page, as Azure does.
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

// NewSlots returns Slots for one evaluation, which stops if ctx ends.
func (q *Query) NewSlots(ctx context.Context, limits Limits) *Slots {
	return &Slots{values: make([][]byte, q.extra+q.extractor.Slots()), ctx: ctx, limits: limits, check: checkEvery}
}

// Failure returns the error that stopped the evaluation, or nil.
func (s *Slots) Failure() error { return s.failure }

// Exhausted reports whether the evaluation has reached the limit of Steps for a page.
func (s *Slots) Exhausted() bool {
	return s.limits.Steps > 0 && s.earlier+int64(s.steps) >= s.limits.Steps
}

// RefuseIfExhausted records a failure if the evaluation is Exhausted. It is for queries that cannot continue on a
// further page.
func (s *Slots) RefuseIfExhausted() {
	if s.Exhausted() {
		s.recordFailure(0, tooBusy)
	}
}

// recordFailure records a failure, unless one is already recorded.
func (s *Slots) recordFailure(at int, reason string) {
	if s.failure == nil {
		s.failure = &Error{at, reason}
	}
}

// CountLookups counts n index lookups. They count toward the limit of a page, but not of a document.
func (s *Slots) CountLookups(n int) { s.earlier += int64(n) * lookSteps }

// nextDocument starts the next document or group.
func (s *Slots) nextDocument() {
	s.earlier += int64(s.steps)
	s.steps, s.check = 0, checkEvery
}

// spendSteps counts steps. It returns false if the evaluation must stop.
func (s *Slots) spendSteps(steps int) bool {
	if s.steps += steps; s.steps < s.check {
		return s.failure == nil
	}
	return s.checkLimits()
}

// spendMade counts the steps for building or converting n bytes.
func (s *Slots) spendMade(n int) bool { return s.spendSteps(1 + n/madePerStep) }

// spendRead counts the steps for reading n bytes.
func (s *Slots) spendRead(n int) bool { return s.spendSteps(1 + n/readPerStep) }

// spendCanonical counts the steps for converting v to canonical form, which reads each level of nesting again.
func (s *Slots) spendCanonical(v Value) bool { return s.spendSteps(canonicalSteps(v)) }

func canonicalSteps(v Value) int {
	if v.Kind < Array {
		return 1 + len(v.Text)/madePerStep
	}
	return 1 + len(v.Text)/madePerStep*(1+rawjson.Depth(v.Text))
}

// spendCompare counts the steps for comparing two arrays or objects.
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

// Hold counts bytes that are retained for the page, such as sort keys. It returns false above the limit.
func (s *Slots) Hold(n int) bool {
	if s.held += int64(n); s.limits.Memory > 0 && s.held > s.limits.Memory {
		s.recordFailure(0, tooLarge)
	}
	return s.failure == nil
}
