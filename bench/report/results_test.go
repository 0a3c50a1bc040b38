package report_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/report"
)

// page writes the results of a report and returns them.
func page(t *testing.T, r *report.Report) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "bench", "RESULTS.md")
	require.NoError(t, r.WriteResults(path, filepath.Join(folder, "bench", "plots")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestTheResultsAreWhatTheRunFound(t *testing.T) {
	golden := filepath.Join("testdata", "RESULTS.md")
	got := page(t, sample())
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestEveryPictureOfTheResultsIsThere(t *testing.T) {
	r := sample()
	text := page(t, r)
	for name := range plots(t, r) {
		require.Contains(t, text, "](plots/"+name+")")
	}
	require.Equal(t, 4, strings.Count(text, "!["))
}

func TestMissedTargetsComeFirst(t *testing.T) {
	text := page(t, sample())
	require.Contains(t, text, "Targets missed: 1 of 4.\n")
	missed := strings.Index(text, "| worst-peek | hub | Peek, of the limit's | **1.5 times** | ≤ 1.25 |")
	require.Positive(t, missed)
	require.Less(t, missed, strings.Index(text, "## worst-peek"))
}

func TestAScenarioThatFailedSaysSo(t *testing.T) {
	r := &report.Report{Sections: []*report.Section{{Scenario: "broken", About: "breaks", Err: errors.New("the account\nis | gone")}}}
	text := page(t, r)
	require.Contains(t, text, `**Not complete:** the account is \| gone`)
	require.Contains(t, text, "Scenario broken was not completed: it may have more.")
	require.NotContains(t, text, "Price list")
}

func TestThePriceOfAMillionEventsFollowsFromItsRequestUnits(t *testing.T) {
	r := &report.Report{Sections: []*report.Section{{Scenario: "price", About: "life", Curves: []figure.Curve{
		bars("price", "dear", figure.PerEvent, 10, 20, 30, 40),
		bars("price", "free", figure.PerEvent, 0, 0, 0, 0),
		bars("price", "not of the list", "RU", 1, 2, 3, 4),
	}}}}
	text := page(t, r)
	require.Contains(t, text, "| price | dear | 10 | 20 | 30 | 40 | 100 RU | 25 USD | 2.222 USD |")
	require.Contains(t, text, "| price | free | 0 | 0 | 0 | 0 | 0 RU | 0 USD | 0 USD |")
	require.NotContains(t, text, "not of the list |")
}

func TestWhatIsModelledSaysSoWhereOthersAreMeasured(t *testing.T) {
	r := sample()
	require.Contains(t, page(t, r), "The account is a model:")
	require.NotContains(t, page(t, r), "| modelled |")
	r.Model, r.Where = false, "the account at https://one.documents.azure.com/"
	r.Sections[0].Figures[0].Modelled = false
	text := page(t, r)
	require.Contains(t, text, "1 of 5 figures were measured on the account")
	require.Contains(t, text, "| 218.4 times | ≥ 20 | ok, modelled |")
	require.Contains(t, text, "| 12.35 s | ≤ 30 | ok |")
}

func TestATableFitsTheTerminal(t *testing.T) {
	r := sample()
	s := r.Sections[0]
	s.About = strings.Repeat("very long ", 20)
	s.Figures = append(s.Figures, hold("worst-peek", "original", strings.Repeat("a metric that does not end ", 6), 1234567.8, "RU/event", figure.AtMost(3)))
	s.Err = errors.New("stopped")
	var b strings.Builder
	require.NoError(t, r.WriteTable(&b, s))
	lines := strings.Split(b.String(), "\n")
	for _, line := range lines {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 100, line)
	}
	require.Regexp(t, `^  layout +metric +value +unit +target$`, lines[1])
	require.Regexp(t, `^  hub +Peek, of the limit's +1\.5 +times +≤ 1\.25 +MISSED$`, lines[3])
	require.Regexp(t, `^  original +a metric .*… +1,234,568 +RU/event +≤ 3 +MISSED$`, lines[6])
	require.Equal(t, "  not complete: stopped", lines[7])
	end := strings.Index(lines[2], "12.35") + len("12.35")
	require.Equal(t, end, strings.Index(lines[5], "52,416")+len("52,416"), "values are flush right")
}

func TestTheJSONHasEveryFigureInTheShapeOfTheContract(t *testing.T) {
	r := sample()
	r.Sections[1].Figures = append(r.Sections[1].Figures, hold("growth", "hub", "nothing", math.NaN(), "RU", figure.AtMost(100_000)))
	path := filepath.Join(t.TempDir(), "figures.json")
	require.NoError(t, r.WriteJSON(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var found []map[string]any
	require.NoError(t, json.Unmarshal(text, &found))
	require.Len(t, found, 6)
	require.Equal(t, map[string]any{
		"scenario": "worst-peek", "layout": "hub", "metric": "Peek, of the limit's", "value": 1.5, "unit": "times", "target": "≤ 1.25", "ok": false,
	}, found[1])
	require.Equal(t, map[string]any{
		"scenario": "worst-peek", "layout": "single", "metric": "RU", "value": 52_416.25, "unit": "RU", "target": nil, "ok": true,
	}, found[3])
	require.Equal(t, map[string]any{
		"scenario": "growth", "layout": "hub", "metric": "nothing", "value": nil, "unit": "RU", "target": "≤ 100000", "ok": false,
	}, found[5])

	require.NoError(t, (&report.Report{}).WriteJSON(path))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, `[]`, string(text))
}

func TestTheVerdictCountsTargets(t *testing.T) {
	r := sample()
	require.Equal(t, "targets missed: 1 of 4", r.Verdict())
	r.Sections = r.Sections[1:]
	require.Equal(t, "all targets are met, 1 of 1", r.Verdict())
	r.Sections = r.Sections[1:]
	require.Equal(t, "no targets", r.Verdict())
}
