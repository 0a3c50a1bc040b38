package embedded_test

import (
	"fmt"
	"math"
	"net/http"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
)

// TestHistoryModel_RefusesImpossibleHistories checks that the model rejects impossible histories. If it did not,
// TestConcurrentClients_SeeASerialOrder could never fail.
func TestHistoryModel_RefusesImpossibleHistories(t *testing.T) {
	one := func(s historyStep, status, value int) porcupine.Operation {
		return porcupine.Operation{Input: historyCall{steps: []historyStep{s}}, Output: callResult{steps: []stepResult{{status, value}}}}
	}
	read, create := historyStep{kind: reading}, historyStep{kind: creating, value: 1}
	lost := porcupine.Operation{Input: historyCall{steps: []historyStep{create}}, Output: callResult{unknown: true}}
	both := porcupine.Operation{
		Input:  historyCall{steps: []historyStep{create, {kind: deleting, key: 1}}},
		Output: callResult{steps: []stepResult{{status: 424}, {status: 404}}},
	}
	for name, tc := range map[string]struct {
		want  porcupine.CheckResult
		calls []porcupine.Operation // calls in this order, which do not overlap
	}{
		"a write is read":                             {porcupine.Ok, []porcupine.Operation{one(create, 201, 1), one(read, 200, 1)}},
		"a write is gone":                             {porcupine.Illegal, []porcupine.Operation{one(create, 201, 1), one(read, 404, 0)}},
		"a conflict with nothing":                     {porcupine.Illegal, []porcupine.Operation{one(create, 409, 0), one(read, 404, 0)}},
		"a lost write happens":                        {porcupine.Ok, []porcupine.Operation{lost, one(read, 200, 1)}},
		"a lost write happens late":                   {porcupine.Ok, []porcupine.Operation{lost, one(read, 404, 0), one(read, 200, 1)}},
		"a lost write never happens":                  {porcupine.Ok, []porcupine.Operation{lost, one(read, 404, 0)}},
		"a lost write does not come and go":           {porcupine.Illegal, []porcupine.Operation{lost, one(read, 200, 1), one(read, 404, 0)}},
		"a batch that failed left nothing":            {porcupine.Ok, []porcupine.Operation{both, one(read, 404, 0)}},
		"a batch that failed left half":               {porcupine.Illegal, []porcupine.Operation{both, one(read, 200, 1)}},
		"two replaced the same version":               {porcupine.Illegal, []porcupine.Operation{one(create, 201, 1), one(historyStep{kind: replacing, value: 2, match: 1}, 200, 2), one(historyStep{kind: replacing, value: 3, match: 1}, 200, 3)}},
		"of two that replaced one version, one loses": {porcupine.Ok, []porcupine.Operation{one(create, 201, 1), one(historyStep{kind: replacing, value: 2, match: 1}, 200, 2), one(historyStep{kind: replacing, value: 3, match: 1}, 412, 0)}},
	} {
		for i := range tc.calls {
			tc.calls[i].Call, tc.calls[i].Return = int64(2*i), int64(2*i+1)
			if tc.calls[i].Output.(callResult).unknown {
				tc.calls[i].Return = math.MaxInt64
			}
		}
		assert.Equal(t, tc.want, porcupine.CheckOperationsTimeout(documents, tc.calls, checkTimeout), name)
	}
}

// keys is the number of documents in the model. The model stores the last value of each; every write has a unique
// value, which therefore identifies the etag.
const keys = 3

type historyState [keys]int // 0 means that the document does not exist

type stepKind int

const (
	creating stepKind = iota
	upserting
	replacing
	patching
	deleting
	reading
	kinds
)

// A historyStep is one operation. match is the version whose etag is sent in If-Match; when is the value that the
// condition of a patch requires. 0 means that there is no such condition.
type historyStep struct {
	kind                    stepKind
	key, value, match, when int
}

// A historyCall is a query for all documents, a single step, or a batch of several steps.
type historyCall struct {
	query bool
	steps []historyStep
}

type stepResult struct{ status, value int }

type callResult struct {
	unknown bool
	steps   []stepResult
	all     historyState // all is the result of a query
}

var documents = porcupine.Model{
	Init: func() any { return historyState{} },
	Step: func(before, in, out any) (bool, any) {
		s, c, got := before.(historyState), in.(historyCall), out.(callResult)
		if c.query {
			return got.unknown || got.all == s, s
		}
		after, want := s.applyAll(c.steps)
		if got.unknown {
			return true, after
		}
		for i, a := range want {
			if a != got.steps[i] {
				return false, s
			}
		}
		return true, after
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v gave %+v", in, out) },
}

// applyAll applies all steps. If a step fails, it returns the unchanged state.
func (s historyState) applyAll(steps []historyStep) (historyState, []stepResult) {
	after, out := s, make([]stepResult, len(steps))
	for i, one := range steps {
		if out[i] = after.applyStep(one); out[i].status < 300 {
			continue
		}
		for j := range out {
			if j != i {
				out[j] = stepResult{status: http.StatusFailedDependency}
			}
		}
		return s, out
	}
	return after, out
}

func (s *historyState) applyStep(one historyStep) stepResult {
	at := &s[one.key]
	exists := *at != 0
	switch {
	case one.kind == creating && exists:
		return stepResult{status: http.StatusConflict}
	case !exists && one.kind != creating && one.kind != upserting:
		return stepResult{status: http.StatusNotFound}
	case exists && (one.match != 0 && one.match != *at || one.when != 0 && one.when != *at):
		return stepResult{status: http.StatusPreconditionFailed}
	}
	switch {
	case one.kind == deleting:
		*at = 0
		return stepResult{status: http.StatusNoContent}
	case one.kind != reading:
		*at = one.value
	}
	if !exists {
		return stepResult{http.StatusCreated, *at}
	}
	return stepResult{http.StatusOK, *at}
}
