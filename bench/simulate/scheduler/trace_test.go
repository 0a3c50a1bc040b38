package scheduler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runTwoTurns returns the trace of two turns that both get a fault unless drop contains its number.
func runTwoTurns(t *testing.T, drop ...int) string {
	t.Helper()
	s := New(1, drop, true, Profile{TurnFaults: 1000, LastStep: 10, kindMask: ^uint64(0)})
	for _, what := range []string{"reads", "writes"} {
		s.Enqueue(&Turn{
			Who: "hub", What: what, Proceed: func() string { return "200" },
			Faults: func() []Fault { return []Fault{{Name: "503", Inject: func() string { return "failed" }}} },
		})
	}
	require.NoError(t, s.Run(func() bool { return s.Steps == 2 }, func() error { return nil }))
	if s.BeginFault() {
		s.LogFault("hub is killed")
	}
	return strings.Join(s.Trace.Lines, "\n")
}

func TestTrace_HasTheNumberThatOmitsAFault(t *testing.T) {
	all := runTwoTurns(t)
	for _, text := range []string{" [503 #1] → failed", " [503 #2] → failed", "hub is killed [#3]"} {
		require.Equal(t, 1, strings.Count(all, text), "%s in\n%s", text, all)
	}
	some := runTwoTurns(t, 1, 3)
	for _, text := range []string{" → 200", " [503 #2] → failed"} {
		require.Equal(t, 1, strings.Count(some, text), "%s in\n%s", text, some)
	}
	require.NotContains(t, some, "is killed")
}
