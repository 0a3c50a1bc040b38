package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench"
	"github.com/messagehub/messagehub/bench/figure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type result struct {
	status   int
	out, err string
}

// runCompare runs the program with a scenario of one figure, whose target is at most
// 10.
func runCompare(t *testing.T, value float64, args ...string) result {
	t.Helper()
	one := bench.NewScenario("one", "what one does", func(_ context.Context, o bench.Options, tell func(figure.Figure)) error {
		if value < 0 {
			return errors.New("no account")
		}
		target := figure.AtMost(10)
		tell(figure.Figure{Scenario: "one", Layout: "hub", Metric: "Peek", Value: value, Unit: "ms", Target: target, OK: target.Met(value), Modelled: true})
		for _, l := range o.Beside {
			tell(figure.Figure{Scenario: "one", Layout: l.Name, Metric: "Peek", Value: value, Unit: "ms", OK: true, Modelled: true})
		}
		o.Curve(figure.Curve{Scenario: "one", Plot: figure.Bars, Name: "hub", Unit: figure.PerEvent, Points: []figure.Point{{Label: "save", Y: value}}})
		return nil
	})
	var out, errs bytes.Buffer
	status := runCommand(t.Context(), &commandProcess{
		args: args, out: &out, err: &errs,
		scenarios: func(...string) ([]bench.Scenario, error) { return []bench.Scenario{one}, nil },
	})
	return result{status, out.String(), errs.String()}
}

func TestCompare_MeasuresTheReplacedLayoutsBesideTheHub(t *testing.T) {
	got := runCompare(t, 1)
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "  hub       Peek        1  ms    ≤ 10    ok\n"+
		"  original  Peek        1  ms\n"+
		"  single    Peek        1  ms\n")
}

func TestCompare_HasTheScenariosOfTheCommandAndTokens(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, 0, runCommand(t.Context(), &commandProcess{args: []string{"--list"}, out: &out, err: &errs}), errs.String())
	for _, s := range append(bench.Scenarios(), bench.Tokens()) {
		require.Contains(t, out.String(), s.Name+" ")
	}
}

func TestCompare_WritesPageAndPlots(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	got := runCompare(t, 1, "--json", at("a/figures.json"), "--results", at("b/RESULTS.md"))
	require.Equal(t, 0, got.status, got.err)
	require.FileExists(t, at("a/figures.json"))
	text, err := os.ReadFile(at("b/RESULTS.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), "- command: `go run ./bench/compare --json "+at("a/figures.json")+" --results "+at("b/RESULTS.md")+"`\n")
	require.Contains(t, string(text), "](plots/one-ru-event-by-operation.svg)")
	require.FileExists(t, at("b/plots/one-ru-event-by-operation.svg"))

	got = runCompare(t, 1, "--results", at("b/RESULTS.md"), "--plots", at("c"))
	require.Equal(t, 0, got.status, got.err)
	text, err = os.ReadFile(at("b/RESULTS.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), "](../c/one-ru-event-by-operation.svg)")
	require.FileExists(t, at("c/one-ru-event-by-operation.svg"))

	got = runCompare(t, 1, "--results", folder)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "compare: --results: ")
}

func TestCompare_ShowsOnThePageThatAScenarioFailed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "RESULTS.md")
	got := runCompare(t, -1, "--results", file)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "compare: scenario one: no account\n")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "Scenario one was not completed")
}

func TestCompare_ExitStatusShowsMissedTargetsAndWrongUsage(t *testing.T) {
	got := runCompare(t, 11)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.out, "\ntargets missed: 1 of 1\n")
	require.NotContains(t, got.err, "compare:", "the table has said it")

	got = runCompare(t, 1, "--fast")
	require.Equal(t, 2, got.status)
	require.Contains(t, got.err, "compare: unknown flag: --fast\ncompare: see go run ./bench/compare --help\n")

	got = runCompare(t, 1, "--cosmos-endpoint", "ftp://there")
	require.Equal(t, 2, got.status)
	require.Contains(t, got.err, "cosmos.endpoint")
}
