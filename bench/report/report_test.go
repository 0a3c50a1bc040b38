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
	"github.com/messagehub/messagehub/bench/report/reporttest"
)

func TestWriteTable_FitsTheTerminal(t *testing.T) {
	r := reporttest.Sample()
	s := r.Sections[0]
	s.About = strings.Repeat("very long ", 20)
	s.Figures = append(s.Figures, reporttest.Hold("worst-peek", "original", strings.Repeat("a metric that does not end ", 6), 1234567.8, "RU/event", figure.AtMost(3)))
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

func TestWriteJSON_HasEveryFigureInTheDocumentedForm(t *testing.T) {
	r := reporttest.Sample()
	r.Sections[1].Figures = append(r.Sections[1].Figures, reporttest.Hold("growth", "hub", "nothing", math.NaN(), "RU", figure.AtMost(100_000)))
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

func TestVerdict_CountsTargets(t *testing.T) {
	r := reporttest.Sample()
	require.Equal(t, "targets missed: 1 of 4", r.Verdict())
	r.Sections = r.Sections[1:]
	require.Equal(t, "all targets are met, 1 of 1", r.Verdict())
	r.Sections = r.Sections[1:]
	require.Equal(t, "no targets", r.Verdict())
}
