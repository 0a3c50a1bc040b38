package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench"
	"github.com/messagehub/messagehub/bench/figure"
)

// A scenarioFunc is the body of a scenario. It reports figures that a test
// chooses.
type scenarioFunc func(ctx context.Context, o bench.Options, tell func(figure.Figure)) error

// runBench runs the command bench in this process with these scenarios.
func runBench(ctx context.Context, scenarios []bench.Scenario, args ...string) result {
	var out, errs bytes.Buffer
	status := run(ctx, &process{
		args: append([]string{"messagehub", "bench"}, args...), out: &out, err: &errs,
		environ:   []string{"MESSAGEHUB_COSMOS_ENDPOINT=https://production.example.com/", "MESSAGEHUB_COSMOS_KEY=c2VjcmV0"},
		scenarios: func(...string) ([]bench.Scenario, error) { return scenarios, nil },
	})
	return result{status, out.String(), errs.String()}
}

func scenario(name string, do scenarioFunc) bench.Scenario {
	return bench.NewScenario(name, "what "+name+" does", do)
}

// scenarioOf returns a scenario that reports one figure, whose target is at
// most 10.
func scenarioOf(name string, value float64) bench.Scenario {
	return scenario(name, func(_ context.Context, o bench.Options, tell func(figure.Figure)) error {
		o.Progress(bench.Progress{Scenario: name, Step: "filling", Done: 0.25})
		o.Progress(bench.Progress{Scenario: name, Step: "filling", Done: 0.3})
		o.Progress(bench.Progress{Scenario: name, Step: "measuring", Done: 0.5})
		target := figure.AtMost(10)
		tell(figure.Figure{Scenario: name, Layout: "hub", Metric: "Peek", Value: value, Unit: "ms", Target: target, OK: target.Met(value), Modelled: o.Endpoint == ""})
		o.Curve(figure.Curve{Scenario: name, Plot: figure.Bars, Name: "hub", Unit: figure.PerEvent, Points: []figure.Point{{Label: "save", Y: value}}})
		return nil
	})
}

func TestBench_PrintsItsResults(t *testing.T) {
	got := runBench(t.Context(), []bench.Scenario{scenarioOf("one", 9.5), scenarioOf("two", 1)})
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, "one: what one does\n"+
		"  layout  metric  value  unit  target\n"+
		"  hub     Peek      9.5  ms    ≤ 10    ok\n\n"+
		"two: what two does\n"+
		"  layout  metric  value  unit  target\n"+
		"  hub     Peek        1  ms    ≤ 10    ok\n\n"+
		"The account is a model: requests and bytes are counted, request units are charged by the model,\n"+
		"and times depend on this machine and on the latency and throttling of the model.\n\n"+
		"all targets are met, 2 of 2\n", got.out)
	require.Equal(t, "measuring on the embedded engine over HTTP, 5ms and 200µs for each 16 KB, up to 2ms more, 10 of 1,000 answers 20ms late\n"+
		"one (1 of 2): filling, 25 %, 0s\n"+
		"one (1 of 2): measuring, 50 %, 0s\n"+
		"two (2 of 2): filling, 25 %, 0s\n"+
		"two (2 of 2): measuring, 50 %, 0s\n", regexp.MustCompile(`\d+s\n`).ReplaceAllString(got.err, "0s\n"), "a line for each step, and nothing that steers a terminal")
}

func TestBench_ExitsWith1ForAMissedTarget(t *testing.T) {
	got := runBench(t.Context(), []bench.Scenario{scenarioOf("one", 10.5), scenarioOf("two", 1)})
	require.Equal(t, 1, got.status)
	require.Contains(t, got.out, "  hub     Peek     10.5  ms    ≤ 10    MISSED\n")
	require.Contains(t, got.out, "\ntargets missed: 1 of 2\n")
	require.NotContains(t, got.err, "messagehub:", "the last line has said it")
}

func TestBench_ContinuesAfterAFailedScenario(t *testing.T) {
	broken := scenario("broken", func(context.Context, bench.Options, func(figure.Figure)) error { return errors.New("no account") })
	file := filepath.Join(t.TempDir(), "figures.json")
	got := runBench(t.Context(), []bench.Scenario{broken, scenarioOf("two", 1)}, "--json", file)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.out, "broken: what broken does\n  not complete: scenario broken: no account\n")
	require.Contains(t, got.out, "\nall targets are met, 1 of 1\n")
	require.Contains(t, got.err, "messagehub: scenario broken: no account\n")
	require.FileExists(t, file)
}

func TestBench_PrintsItsFiguresWhenItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	slow := scenario("slow", func(ctx context.Context, _ bench.Options, tell func(figure.Figure)) error {
		tell(figure.Figure{Scenario: "slow", Layout: "hub", Metric: "Save", Value: 3, Unit: "RU", OK: true})
		stop()
		<-ctx.Done()
		return ctx.Err()
	})
	file := filepath.Join(t.TempDir(), "figures.json")
	got := runBench(ctx, []bench.Scenario{scenarioOf("one", 1), slow, scenarioOf("never", 1)}, "--json", file)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.out, "  hub     Peek        1  ms    ≤ 10    ok\n")
	require.Contains(t, got.out, "  hub     Save        3  RU\n  not complete: stopped\n")
	require.NotContains(t, got.out, "never")
	require.Contains(t, got.err, "messagehub: stopped before the end: what is above is all that is known, and no file was written\n")
	require.NoFileExists(t, file)
}

func TestBench_WritesItsFiguresAsJSON(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "a", "figures.json")
	got := runBench(t.Context(), []bench.Scenario{scenarioOf("one", 1)}, "--json", file)
	require.Equal(t, 0, got.status, got.err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var figures []map[string]any
	require.NoError(t, json.Unmarshal(text, &figures))
	require.Equal(t, []map[string]any{{
		"scenario": "one", "layout": "hub", "metric": "Peek", "value": 1.0, "unit": "ms", "target": "≤ 10", "ok": true,
	}}, figures)

	got = runBench(t.Context(), []bench.Scenario{scenarioOf("one", 1)}, "--json", folder)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "messagehub: --json: ")
}

func TestBench_MeasuresOnlyTheHub(t *testing.T) {
	count := scenario("count", func(_ context.Context, o bench.Options, tell func(figure.Figure)) error {
		tell(figure.Figure{Scenario: "count", Layout: "hub", Metric: "layouts beside", Value: float64(len(o.Beside)), OK: true})
		return nil
	})
	got := runBench(t.Context(), []bench.Scenario{count})
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "  hub     layouts beside      0\n")
}

func TestBench_NamesTheProgramThatHasItsFormerFlags(t *testing.T) {
	for _, flag := range []string{"--results", "--plots"} {
		got := messagehub(t, "", "bench", flag, "there")
		require.Equal(t, 2, got.status)
		require.Contains(t, got.err, "messagehub: unknown flag: "+flag+": the page and the plots are written by another program, in the source tree: go run ./bench/compare "+flag+"\n")
	}
	got := messagehub(t, "", "bench", "--fast")
	require.NotContains(t, got.err, "compare", "it was no flag of bench")
}

func TestBench_MeasuresAnAccountOnlyIfItIsNamed(t *testing.T) {
	var seen []bench.Options
	look := scenario("look", func(_ context.Context, o bench.Options, tell func(figure.Figure)) error {
		seen = append(seen, bench.Options{Endpoint: o.Endpoint, Key: o.Key, Quick: o.Quick, Seed: o.Seed})
		tell(figure.Figure{Scenario: "look", Layout: "hub", Metric: "Peek", Value: 1, OK: true, Modelled: o.Endpoint == ""})
		return nil
	})
	require.Equal(t, 0, runBench(t.Context(), []bench.Scenario{look}).status)
	got := runBench(t.Context(), []bench.Scenario{look}, "--cosmos-endpoint", "https://test.example.com/", "--quick", "--seed", "9")
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, []bench.Options{{Seed: 1}, {Endpoint: "https://test.example.com/", Key: "c2VjcmV0", Quick: true, Seed: 9}}, seen)
	require.Contains(t, got.err, "measuring on the account at https://test.example.com/\n")
	require.Contains(t, got.out, "All figures were measured on the account")
	require.NotContains(t, got.out+got.err, "c2VjcmV0")
}

func TestBench_MeasuresNothingIfItsCommandLineIsInvalid(t *testing.T) {
	never := scenario("never", func(context.Context, bench.Options, func(figure.Figure)) error {
		t.Error("it was run")
		return nil
	})
	for want, args := range map[string][]string{
		"cosmos.endpoint = \"ftp://there\"": {"--cosmos-endpoint", "ftp://there"},
		"want a whole number of at least 0": {"--seed", "x"},
		"unknown flag: --fast":              {"--fast"},
		"--broker is for the scenario push": {"--broker", "never"},
	} {
		got := runBench(t.Context(), []bench.Scenario{never}, args...)
		require.Equal(t, 2, got.status, got.err)
		require.Contains(t, got.err, want)
	}
	got := messagehub(t, "", "bench", "nothing-of-the-kind")
	require.Equal(t, 2, got.status)
	require.Contains(t, got.err, `messagehub: no scenario "nothing-of-the-kind": there are`)

	got = messagehub(t, "", "bench", "push", "--broker", "--list")
	require.Equal(t, 0, got.status)
	require.Contains(t, got.out, "broker  messages are broadcast")

	got = runBench(t.Context(), []bench.Scenario{never, scenarioOf("one", 1)}, "--list")
	require.Equal(t, result{0, "never  what never does\none    what one does\n", ""}, got)
}
