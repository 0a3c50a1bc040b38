package page_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/compare/internal/page"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/report"
	"github.com/messagehub/messagehub/bench/report/reporttest"
)

// writePage writes the page of a report and returns it.
func writePage(t *testing.T, r *report.Report) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "bench", "RESULTS.md")
	require.NoError(t, page.Write(r, path, filepath.Join(folder, "bench", "plots")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestWrite_WritesTheExpectedPage(t *testing.T) {
	golden := filepath.Join("testdata", "RESULTS.md")
	got := writePage(t, reporttest.Sample())
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestWrite_LinksToExistingPictures(t *testing.T) {
	r := reporttest.Sample()
	text := writePage(t, r)
	for name := range drawPlots(t, r) {
		require.Contains(t, text, "](plots/"+name+")")
	}
	require.Equal(t, 4, strings.Count(text, "!["))
}

func TestWrite_ListsMissedTargetsFirst(t *testing.T) {
	text := writePage(t, reporttest.Sample())
	require.Contains(t, text, "Targets missed: 1 of 4.\n")
	missed := strings.Index(text, "| worst-peek | hub | Peek, of the limit's | **1.5 times** | ≤ 1.25 |")
	require.Positive(t, missed)
	require.Less(t, missed, strings.Index(text, "## worst-peek"))
}

func TestWrite_ShowsTheErrorOfAFailedScenario(t *testing.T) {
	r := &report.Report{Sections: []*report.Section{{Scenario: "broken", About: "breaks", Err: errors.New("the account\nis | gone")}}}
	text := writePage(t, r)
	require.Contains(t, text, `**Not complete:** the account is \| gone`)
	require.Contains(t, text, "Scenario broken was not completed: it may have more.")
	require.NotContains(t, text, "Price list")
}

func TestPriceList_FollowsFromRequestUnits(t *testing.T) {
	r := &report.Report{Sections: []*report.Section{{Scenario: "price", About: "life", Curves: []figure.Curve{
		reporttest.Bars("price", "dear", figure.PerEvent, 10, 20, 30, 40),
		reporttest.Bars("price", "free", figure.PerEvent, 0, 0, 0, 0),
		reporttest.Bars("price", "not of the list", "RU", 1, 2, 3, 4),
	}}}}
	text := writePage(t, r)
	require.Contains(t, text, "| price | dear | 10 | 20 | 30 | 40 | 100 RU | 25 USD | 2.222 USD |")
	require.Contains(t, text, "| price | free | 0 | 0 | 0 | 0 | 0 RU | 0 USD | 0 USD |")
	require.NotContains(t, text, "not of the list |")
}

func TestModelledFigures_AreMarkedAmongMeasuredOnes(t *testing.T) {
	r := reporttest.Sample()
	require.Contains(t, writePage(t, r), "The account is a model:")
	require.NotContains(t, writePage(t, r), "| modelled |")
	r.Model, r.Where = false, "the account at https://one.documents.azure.com/"
	r.Sections[0].Figures[0].Modelled = false
	text := writePage(t, r)
	require.Contains(t, text, "1 of 5 figures were measured on the account")
	require.Contains(t, text, "| 218.4 times | ≥ 20 | ok, modelled |")
	require.Contains(t, text, "| 12.35 s | ≤ 30 | ok |")
}

func TestReplace_ReplacesOneScenario(t *testing.T) {
	folder := t.TempDir()
	path, plots := filepath.Join(folder, "RESULTS.md"), filepath.Join(folder, "plots")
	require.NoError(t, page.Write(reporttest.Sample(), path, plots))
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	replacing := func(s *report.Section) string {
		require.NoError(t, page.Replace(&report.Report{Facts: report.Facts{Commit: "abcdef", Command: "compare"}, Sections: []*report.Section{s}}, path, plots))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	text := replacing(&report.Section{Scenario: "worst-peek", About: "a bundle", Figures: []figure.Figure{
		{Scenario: "worst-peek", Layout: "hub", Metric: "peek", Value: 1, Unit: "times", Target: figure.AtMost(1.25), OK: true},
	}})
	require.Contains(t, text, "All targets are met, 2 of 2.\n")
	require.Contains(t, text, "## worst-peek\n\nA bundle.\n\n| layout |")
	require.Contains(t, text, "at commit abcdef, by `compare`.\n\n## growth\n")
	require.NotContains(t, text, "MISSED")
	_, growth, _ := strings.Cut(string(before), "\n## growth\n")
	require.True(t, strings.HasSuffix(text, growth), "the rest stays")
	text = replacing(&report.Section{Scenario: "new", About: "is new", Err: errors.New("it failed")})
	require.Contains(t, text, "Scenario new was not completed: it may have more.")
	require.Less(t, strings.Index(text, "## new"), strings.Index(text, "## Price list"))
}
