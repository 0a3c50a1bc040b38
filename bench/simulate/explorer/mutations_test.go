package explorer

import (
	"bytes"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// findScenario returns a copy of a scenario, which the caller may change.
func findScenario(t *testing.T, name string) *Scenario {
	t.Helper()
	for _, s := range Scenarios() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no scenario %s", name)
	return nil
}

var condition = regexp.MustCompile(`,?"ifMatch":"(\\.|[^"\\])*"`)

// dropCondition returns a mutation that removes the conditions from the writes of the named steps.
func dropCondition(names ...steps.Name) func(*partyRequest) {
	return func(r *partyRequest) {
		for _, name := range names {
			if r.name == name {
				r.header.Del(conditionHeader)
				r.body = condition.ReplaceAll(r.body, nil)
				r.body = bytes.ReplaceAll(r.body, []byte(" and c.sealed = false and c.count"), []byte(" and 0 <= c.count or c.count"))
			}
		}
	}
}

var patchCondition = regexp.MustCompile(`"condition":"(\\.|[^"\\])*",?`)

// dropPatchCondition is dropCondition for one step, and also removes the conditions inside patches.
func dropPatchCondition(name steps.Name) func(*partyRequest) {
	return func(r *partyRequest) {
		dropCondition(name)(r)
		if r.name == name {
			r.body = patchCondition.ReplaceAll(r.body, nil)
		}
	}
}

// TestExplorer_FindsBrokenConditions removes conditions from the hub's requests. The explorer must find a violation.
func TestExplorer_FindsBrokenConditions(t *testing.T) {
	for _, tc := range []struct {
		name     string
		scenario string
		change   func(*Scenario)
		finds    string
	}{
		{
			"no condition on the head", "save-save",
			func(s *Scenario) {
				s.mutateRequest = dropCondition(steps.Reserve, steps.Commit, steps.Claim, steps.Clear)
			}, "H3: ",
		},
		{
			"no condition on the commit alone", "save-save",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.Commit) }, "H5: ",
		},
		{
			"no condition on the claim alone", "save-save",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.Claim) }, "H5: ",
		},
		{
			"no condition on a count", "save-crash-save-same",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.Count) }, "H8: ",
		},
		{
			"no condition on the gate, when a bundle is opened", "peek-peek",
			func(s *Scenario) {
				s.Prepare = prepareSaves(list{eventsOf(1)}, takeBundle, func(m *Member) { m.Save(eventsOf(3)) })
				s.mutateRequest = dropCondition(steps.OpenBundle)
			}, "H6: ",
		},
		{
			"no condition on bundle and gate, when a bundle is dequeued", "dequeue-dequeue-lost",
			func(s *Scenario) { s.mutateRequest = dropPatchCondition(steps.Dequeue) }, "H7: ",
		},
		{
			"an account that says Strong and shows an old gate", "dequeue-then-peek-stale",
			func(s *Scenario) { s.Session = false }, "after it was dequeued",
		},
		{
			"a bundle that is proved without a condition", "dequeue-then-peek-stale",
			func(s *Scenario) { s.mutateRequest = dropPatchCondition(steps.Prove) }, "is open, and gate.timeseries has",
		},
		{
			"a rollback that does not seal", "save-save",
			func(s *Scenario) {
				s.mutateRequest = func(r *partyRequest) {
					if r.name == steps.Bar {
						r.body = bytes.ReplaceAll(r.body, []byte("true"), []byte("false"))
					}
				}
			}, "H8: ",
		},
		{
			"a commit that is answered and not done", "save-dequeue",
			func(s *Scenario) {
				s.mutateRequest = func(r *partyRequest) {
					if r.name == steps.Commit {
						r.method, r.body = http.MethodGet, nil
					}
				}
			}, "was lost",
		},
		{
			"no condition on a small Save", "tail-save-save",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.Commit) }, "H2: slot 1 of the tail",
		},
		{
			"a page of a flush that is answered and not written", "tail-flush-flush",
			func(s *Scenario) {
				s.mutateRequest = func(r *partyRequest) {
					if r.name == steps.Flush {
						r.method, r.body = http.MethodGet, nil
					}
				}
			}, "H8: ",
		},
		{
			"no condition on the count of a flush", "tail-flush-counted",
			func(s *Scenario) { s.mutateRequest = dropPatchCondition(steps.Count) }, "H8: ",
		},
		{
			"no condition on the mark of deleted content", "content-gone-twice",
			func(s *Scenario) { s.mutateRequest = dropPatchCondition(steps.MarkGone) }, "L9: ",
		},
		{
			"no condition on an answer in place of deleted content", "content-gone-fetch-fetch",
			func(s *Scenario) { s.mutateRequest = dropPatchCondition(steps.Answer) }, "L9: ",
		},
		{
			"no condition on a document that is marked as watched concurrently", "watch-put",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.PutDocument) }, "P14: ",
		},
		{
			"no condition on a change", "put-put-publish",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.Change) }, "P14: ",
		},
		{
			"no condition on an append to the stream", "publish-publish",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.Append) }, "P1: ",
		},
		{
			"no condition on a settlement", "unwatch-serve-lost",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.Settle, steps.Cancel) }, "P5: ",
		},
		{
			"a change that is removed before it is published", "publish-publish",
			func(s *Scenario) {
				s.mutateRequest = func(r *partyRequest) {
					if r.name == steps.Append {
						r.method, r.body = http.MethodGet, nil
					}
				}
			}, "P14: ",
		},
		{
			"no condition on an object", "object-same",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.UpdateObjects) }, "L5: ",
		},
		{
			"no condition on an object whose rows spill", "object-late-spill",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.Spill) }, "L5: ",
		},
		{
			"no condition on an object whose rows are forgotten", "object-forget-again",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.Forget) }, "L5: ",
		},
		{
			"no condition on an object that is crawled", "object-crawl-late",
			func(s *Scenario) { s.mutateRequest = dropCondition(steps.UpdateObjects, steps.Spill) }, "L5: ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := findScenario(t, tc.scenario)
			tc.change(s)
			r, _ := exploreScenario(t, s, 0)
			require.ErrorContains(t, r.Violation, tc.finds)
			t.Log(r.Violation)
		})
	}
}
