package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/record"
)

func newState() *campaignState {
	return &campaignState{
		Origins:  []testedTree{{Commit: "c1", Machine: "2 cores, linux/amd64", Go: "go1.26.8"}},
		Commands: []string{"go run ./bench/simulate/prove -seeds 60000"}, Began: "2026-11-21", Wall: 100,
		Seeds: spans{{0, 60_000}}, Steps: 12_000_000, Faulted: 900_000, Seconds: 190, Histories: 30_000,
		Coverage: map[string]int64{"own 412": 99, "own | 409": 100}, Twice: spans{{0, 1000}},
		Failed: []failure{{7, "c1", "an event was lost", ""}, {8, "c0", "two were", "c1"}},
	}
}

func TestReport_ContainsTheWholeState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	require.NoError(t, newState().writeReport(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, line := range []string{
		"Written by `go run ./bench/simulate/prove`; do not edit.",
		"- commit c1 on 2 cores, linux/amd64, go1.26.8",
		"- begun on 2026-11-21; 3m10s summed over all processes, 1m40s elapsed",
		"| seeds | at least 50000 | 60000 |",
		"| steps | at least 10000000 | 12000000 |",
		"| steps with a fault | at least 5 % | 7.5 % |",
		"| seeds run twice | at least 1000 | 1000 |",
		"| of these, with differing traces | 0 | 0 |",
		"| steps per second | | 120000 |",
		"The seeds: 0 to 59999.",
		"| own 412 | 99 | too rare |\n| own \\| 409 | 100 |  |",
		"| seeds that still fail | 0 | 1 |",
		"| 7 | c1 | an event was lost | no |",
		"| 8 | c0 | two were | c1 |",
		"\tgo run ./bench/simulate/prove -seeds 60000",
	} {
		require.Contains(t, string(text), line)
	}
	require.NoError(t, newState().writeReport(""))
}

func TestProgress_WithoutTerminalIsOccasionalLines(t *testing.T) {
	var out bytes.Buffer
	p := &progressLine{to: &out}
	s := newState()
	at := time.Unix(0, 0)
	s.Seeds, s.Steps = spans{{0, 100}}, 1000
	p.showIfDue(at, s, 0, 1000)
	p.showIfDue(at.Add(9*time.Second), s, 0, 1000)
	require.Empty(t, out.String())
	s.Seeds, s.Steps, s.Faulted = spans{{0, 200}}, 11_000, 1100
	p.showIfDue(at.Add(10*time.Second), s, 1, 900)
	p.endLine()
	require.Equal(t, "200 seeds, 11000 steps, 10.0 % faulted, 1000 steps/s, 1 failed, 1m30s to go; rare states 2/2, least \"own 412\" 99\n", out.String())
}

func TestProgress_ExcludesTheTimeOfSecondRuns(t *testing.T) {
	var out bytes.Buffer
	p := &progressLine{to: &out}
	s := newState()
	s.Seeds, s.Steps, s.Faulted, s.Coverage = nil, 0, 100, nil
	at := time.Unix(0, 0)
	p.showIfDue(at, s, 0, 1000)
	s.Twice = spans{{0, 50}}
	p.showIfDue(at.Add(time.Hour), s, 0, 1000)
	s.Seeds, s.Steps = spans{{0, 100}}, 1000
	p.showIfDue(at.Add(time.Hour+10*time.Second), s, 0, 900)
	require.Equal(t, "50 seeds twice, 0 seeds, 0 steps, 0.0 % faulted, 0 steps/s, 0 failed, unknown to go\n"+
		"100 seeds, 1000 steps, 10.0 % faulted, 100 steps/s, 0 failed, 1m30s to go\n", out.String())
}

func TestProgress_OnATerminalIsOneLine(t *testing.T) {
	var out bytes.Buffer
	p := &progressLine{to: &out, terminal: true, width: func() int { return 10 }}
	p.showIfDue(time.Unix(0, 0), &campaignState{}, 0, 0)
	p.printLine("seed 7 fails")
	p.endLine()
	require.Equal(t, "\r0 seeds, \x1b[K\r\x1b[Kseed 7 fails\n\n", out.String())
}

func TestState_CreatesItsFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bin", "state.json")
	require.NoError(t, record.WriteFile(path, []byte("{}")))
	require.FileExists(t, path)
}
