package history

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Options describe which answers of a hub are uncertain, and limit the search.
type Options struct {
	// StaleReads says that reads of the hub may be stale, as on an account with Session consistency. Then a Peek
	// without a bundle excludes nothing, and a Peek of several groups may miss an open bundle of one group.
	StaleReads bool

	// AnyOpen says that the nodes of the hub disagree on the time, or that time stands still. It is then unknown which
	// bundle has been open longest, so a Peek of several groups may return any open bundle.
	AnyOpen bool

	Steps int // limit for the steps of the search; default 1,000,000
}

// A Verdict is the result of a check.
type Verdict int

// The verdicts. Only Legal is a success.
const (
	GaveUp  Verdict = iota // the search reached its limit, so the result is inconclusive
	Legal                  // a correct hub could have given these answers
	Illegal                // no correct hub could have given these answers
)

func (v Verdict) String() string { return [...]string{"gave up", "legal", "illegal"}[v] }

// A Result is a verdict with its details.
type Result struct {
	Verdict Verdict
	Steps   int // number of steps of the search

	Longest []string // operations of an illegal history in the longest possible order
	Left    []string // operations that cannot be added to Longest
}

// String describes the result in full.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s after %d steps", r.Verdict, r.Steps)
	if r.Verdict == Illegal {
		fmt.Fprintf(&b, "\npossible in this order:\n\t%s\nand then none of:\n\t%s", strings.Join(r.Longest, "\n\t"), strings.Join(r.Left, "\n\t"))
	}
	return b.String()
}

// Check searches for an order of the operations in which a correct hub returns the recorded answers.
func (h History) Check(opts Options) Result {
	if opts.Steps <= 0 {
		opts.Steps = 1_000_000
	}
	t, steps := tableOf(h.operations)
	search := &modelSearch{hubModel: hubModel{nameTable: t, Options: opts}, left: opts.Steps}
	steps = search.narrowSteps(steps)
	result := search.runSearch(steps)
	if result.Verdict == Illegal {
		search.blind, search.left = true, opts.Steps // the second search has the same limit of steps
		result.Longest, result.Left = search.explainFailure(operationsOf(steps))
	}
	return result
}

func operationsOf(steps []*modelStep) []porcupine.Operation {
	operations := make([]porcupine.Operation, len(steps))
	for i, s := range steps {
		operations[i] = porcupine.Operation{ClientId: s.client, Input: s, Output: s, Call: s.call, Return: s.done}
	}
	return operations
}

// A modelSearch is a search with a limited number of steps.
type modelSearch struct {
	hubModel
	left int // number of remaining steps
}

func (s *modelSearch) runSearch(steps []*modelStep) Result {
	atFirst := s.left
	legal := porcupine.CheckOperations(s.newModel(), operationsOf(steps))
	result := Result{Verdict: Illegal, Steps: atFirst - s.left}
	switch {
	case s.left == 0:
		result.Verdict = GaveUp
	case legal:
		result.Verdict = Legal
	}
	return result
}

func (s *modelSearch) newModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return s.emptyMailbox() },
		Step: func(state, input, _ any) (bool, any) {
			if s.left == 0 {
				return false, nil
			}
			s.left--
			next := s.applyStep(state.(*mailbox), input.(*modelStep))
			return next != nil, next
		},
		Equal: func(a, b any) bool { return a.(*mailbox).isEqual(b.(*mailbox)) },
		Hash:  func(state any) uint64 { return state.(*mailbox).hash },
	}
}

// explainFailure returns the longest possible order of operations, and the operations that do not fit.
func (s *modelSearch) explainFailure(operations []porcupine.Operation) (longest, left []string) {
	_, info := porcupine.CheckOperationsVerbose(s.newModel(), operations, 0)
	var most []porcupine.Operation
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) > len(most) {
			most = order
		}
	}
	placed := make(map[any]bool)
	for _, op := range most {
		placed[op.Input] = true
		longest = append(longest, op.Input.(*modelStep).String())
	}
	for _, op := range operations {
		if !placed[op.Input] {
			left = append(left, op.Input.(*modelStep).String())
		}
	}
	return longest, left
}
