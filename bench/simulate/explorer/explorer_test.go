package explorer

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain reduces garbage collection, because an exploration opens thousands of small stores.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// exploreScenario explores a scenario for up to limit, or completely if limit is 0.
func exploreScenario(t *testing.T, s *Scenario, limit time.Duration) (Result, time.Duration) {
	t.Helper()
	var enough atomic.Bool
	if limit > 0 { // this timer is outside of the bubble, so the limit is in real time
		defer time.AfterFunc(limit, func() { enough.Store(true) }).Stop()
	}
	began := time.Now()
	var result Result
	synctest.Test(t, func(t *testing.T) {
		var err error
		result, err = Explore(s, enough.Load)
		require.NoError(t, err)
	})
	return result, time.Since(began)
}

// TestScenarios_HoldInEveryOrder explores the quick scenarios.
func TestScenarios_HoldInEveryOrder(t *testing.T) {
	for _, s := range Scenarios() {
		if !s.Quick {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			r, took := exploreScenario(t, s, 0)
			require.NoError(t, r.Violation)
			require.True(t, r.Exhausted)
			require.Positive(t, r.Ends)
			t.Logf("%d states, %d transitions, %d ends, %s", r.States, r.Transitions, r.Ends, took.Round(time.Millisecond))
		})
	}
}

// TestDeletedContent_HoldsInEveryOrder explores all scenarios of deleted content.
func TestDeletedContent_HoldsInEveryOrder(t *testing.T) {
	for _, s := range contentScenarios() {
		t.Run(s.Name, func(t *testing.T) {
			r, _ := exploreScenario(t, s, time.Minute)
			require.NoError(t, r.Violation)
		})
	}
}

// TestEveryScenario_HoldsInEveryOrder explores all scenarios, and writes the results to the file that
// MESSAGEHUB_EXPLORER_RESULTS names. Without that variable it does nothing; `make explore` sets it.
func TestEveryScenario_HoldsInEveryOrder(t *testing.T) {
	file := os.Getenv("MESSAGEHUB_EXPLORER_RESULTS")
	if file == "" {
		t.Log("left out: MESSAGEHUB_EXPLORER_RESULTS is not set")
		return
	}
	most := 10 * time.Minute
	if n, err := strconv.Atoi(os.Getenv("MESSAGEHUB_EXPLORER_RESULTS_SECONDS")); err == nil {
		most = time.Duration(n) * time.Second
	}
	report := &explorationReport{limit: most, commit: os.Getenv("MESSAGEHUB_COMMIT")}
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			r, took := exploreScenario(t, s, most)
			report.addLine(s, r, took)
			t.Log(report.lines[len(report.lines)-1])
			require.NoError(t, os.WriteFile(file, []byte(report.String()), 0o600))
			require.NoError(t, r.Violation)
		})
	}
}

// An explorationReport is the table of the explored scenarios.
type explorationReport struct {
	limit  time.Duration
	commit string
	lines  []string
}

func (r *explorationReport) addLine(s *Scenario, found Result, took time.Duration) {
	exhausted := "yes"
	switch {
	case found.Violation != nil:
		exhausted = "**violation**"
	case !found.Exhausted:
		exhausted = "no"
	}
	r.lines = append(r.lines, fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %d | %d | %.1f | %s |",
		s.Name, s.Text, found.States, found.Transitions, found.Depth, found.Width, found.Stores, found.Histories, found.Ends, took.Seconds(), exhausted))
}

func (r *explorationReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Explored scenarios\n\nWritten by `make explore`; do not edit.\n\n- commit: %s\n- at most %s for each scenario\n\n", r.commit, r.limit)
	b.WriteString("All interleavings of all requests were explored. The package comment defines a state. Depth is\nthe length of the longest path, in requests; width is the maximum number of choices in one state;\nstores is the number of different contents of the store; histories is the number of different\nhistories of the parties; ends is the number of different ends that were checked. A scenario that\nis not exhausted was explored up to one step less than its depth.\n\n")
	b.WriteString("| scenario | about | states | transitions | depth | width | stores | histories | ends | seconds | exhausted |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n")
	b.WriteString(strings.Join(r.lines, "\n") + "\n")
	return b.String()
}

func TestExplore_IsRepeatable(t *testing.T) {
	first, _ := exploreScenario(t, findScenario(t, "dequeue-dequeue-lost"), 0)
	again, _ := exploreScenario(t, findScenario(t, "dequeue-dequeue-lost"), 0)
	require.Equal(t, first, again)
}

// TestExplore_MergesOrdersOfConcurrentAnswers compares explorations with and without the reduction. Without the
// reduction, histories differ if only the order of concurrent answers differs.
func TestExplore_MergesOrdersOfConcurrentAnswers(t *testing.T) {
	for _, name := range []string{"dequeue-dequeue-lost", "save-dequeue"} {
		few, _ := exploreScenario(t, findScenario(t, name), 0)
		s := findScenario(t, name)
		s.distinguishesOrder = true
		many, _ := exploreScenario(t, s, 0)
		require.Greater(t, many.States, few.States)
		require.Equal(t, few.Stores, many.Stores)
		require.Equal(t, few.Ends, many.Ends)
		require.Equal(t, few.Depth, many.Depth)
	}
}
