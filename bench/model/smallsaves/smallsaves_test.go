package smallsaves

import (
	"strings"
	"testing"
)

// explored are the scenarios that a test run explores, with their numbers of
// distinct states. A change of the model changes these numbers.
var explored = map[string]int{
	"two-domains-stale":      6704,
	"savers-cap1":            16444,
	"savers-cap2":            26700,
	"merged-with-the-commit": 39044,
	"payloads":               32043,
	"peek-stale":             25627,
	"sweep-leaves-nothing":   426,
	"count-savers-cap1":      31602,
}

func TestScenarios_HoldInEveryState(t *testing.T) {
	t.Parallel()
	found := 0
	for _, group := range Groups() {
		for _, s := range group.Scenarios {
			want, ok := explored[s.Name]
			if !ok {
				continue
			}
			found++
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				r := Explore(t.Context(), &s, Limits{})
				if r.Violation != nil {
					t.Fatal(r.Violation)
				}
				if !r.Exhausted || r.States != want {
					t.Fatalf("%d states, exhausted: %v %s; want all of %d", r.States, r.Exhausted, r.Reason, want)
				}
			})
		}
	}
	if found != len(explored) {
		t.Fatalf("%d of %d scenarios were found", found, len(explored))
	}
}

func TestMutations_ViolateAnInvariant(t *testing.T) {
	t.Parallel()
	for _, s := range Mutations() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			r := Explore(t.Context(), &s, Limits{States: 100_000})
			if r.Violation == nil {
				t.Fatalf("no violation in %d states", r.States)
			}
		})
	}
}

func TestTrace_LeadsToTheViolation(t *testing.T) {
	t.Parallel()
	for _, s := range Mutations() {
		if s.Name != "payloads-dropped-on-refusal" {
			continue
		}
		trace := Explore(t.Context(), &s, Limits{}).Violation.Trace
		if len(trace) != 5 || !strings.Contains(strings.Join(trace, "\n"), "SMALL SAVE [1] as 1..1 [applied, reply lost]") {
			t.Fatalf("the trace is not the shortest: %q", trace)
		}
	}
}

func TestExplore_ReportsAScenarioBeyondItsLimits(t *testing.T) {
	t.Parallel()
	s := smallSaves[0]
	for _, limits := range []Limits{{States: 1000}, {Frontier: 100_000}} {
		r := Explore(t.Context(), &s, limits)
		if r.Exhausted || r.Reason == "" {
			t.Fatalf("with %+v: exhausted: %v, reason %q", limits, r.Exhausted, r.Reason)
		}
	}
}

func TestWalk_ViolatesNoInvariant(t *testing.T) {
	t.Parallel()
	s := Walks()
	if r := Walk(t.Context(), &s, 30); r.Violation != nil || r.Transitions == 0 {
		t.Fatalf("%d steps: %v", r.Transitions, r.Violation)
	}
}

func TestReads_ReturnDistinctOlderVersions(t *testing.T) {
	t.Parallel()
	var v versions[cabinetPosition]
	for _, slot := range []uint8{1, 2, 1} {
		v.write(cabinetPosition{slot: slot}, 2)
	}
	var slots, costs []uint8
	for p, cost := range v.reads(1) {
		slots, costs = append(slots, p.slot), append(costs, cost)
	}
	if string(slots) != "\x01\x02" || string(costs) != "\x00\x01" {
		t.Fatalf("slots %v at costs %v", slots, costs)
	}
	for p, cost := range v.reads(0) {
		if *p != v.current || cost != 0 {
			t.Fatal("without a budget a read returned an older version")
		}
	}
}
