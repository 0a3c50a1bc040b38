package page_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/compare/internal/page"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/report"
	"github.com/messagehub/messagehub/bench/report/reporttest"
)

// drawPlots draws a report and returns the pictures by name.
func drawPlots(t *testing.T, r *report.Report) map[string]string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, page.WritePlots(r, folder))
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	found := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found[filepath.Base(file)] = string(text)
	}
	return found
}

func TestCurves_WithTheSamePlotAndUnitShareAPicture(t *testing.T) {
	found := drawPlots(t, reporttest.Sample())
	var names []string
	for name, text := range found {
		names = append(names, name)
		requireXML(t, text)
	}
	require.ElementsMatch(t, []string{
		"growth-requests-by-stored-events.svg", "growth-ru-by-stored-events.svg",
		"price-ru-event-by-operation.svg", "worst-peek-ms-by-percentile.svg",
	}, names)
	for name, words := range map[string][]string{
		"worst-peek-ms-by-percentile.svg":      {"worst-peek: time by percentile", "time (ms)", "99.99 %", "original dequeue"},
		"growth-ru-by-stored-events.svg":       {"request units (RU)", "stored events", "1,000,000", "hub dequeue"},
		"price-ru-event-by-operation.svg":      {"request units (RU/event)", "clean-up", "0.0047", "hub, standard"},
		"growth-requests-by-stored-events.svg": {">requests<"},
	} {
		for _, word := range words {
			require.True(t, strings.Contains(found[name], word), "%s in %s", word, name)
		}
	}
}

func requireXML(t *testing.T, text string) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			require.NoError(t, err)
		}
	}
}

func TestWritePlots_IsDeterministic(t *testing.T) {
	first, second := drawPlots(t, reporttest.Sample()), drawPlots(t, reporttest.Sample())
	require.Len(t, first, 4)
	require.True(t, maps.Equal(first, second))
}

func TestPoints_WithoutALogarithmAreLeftOut(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	section := &report.Section{Curves: []figure.Curve{
		{Scenario: "odd", Plot: figure.Growth, Name: "nothing", Unit: "RU", Points: []figure.Point{{X: 0, Y: 1}, {X: 1, Y: 0}, {X: nan, Y: 1}, {X: 1, Y: inf}}},
		{Scenario: "odd", Plot: figure.Percentiles, Name: "one", Unit: "ms", Points: []figure.Point{{X: 0.5, Y: 3}, {X: 1, Y: 4}, {X: -1, Y: 5}, {X: 0.9, Y: -1}}},
		{Scenario: "odd", Plot: figure.Bars, Name: "none", Unit: "RU", Points: []figure.Point{{Label: "save", Y: 0}}},
	}}
	found := drawPlots(t, &report.Report{Sections: []*report.Section{section}})
	require.Equal(t, []string{"odd-ms-by-percentile.svg"}, slices.Collect(maps.Keys(found)), "a picture of nothing is not drawn")
}

func TestWritePlots_FailsForAnUnknownPlot(t *testing.T) {
	section := &report.Section{Curves: []figure.Curve{{Scenario: "odd", Plot: "by moonlight", Unit: "ms", Points: []figure.Point{{X: 1, Y: 1}}}}}
	err := page.WritePlots(&report.Report{Sections: []*report.Section{section}}, t.TempDir())
	require.ErrorContains(t, err, `no such plot: "by moonlight"`)
}

func TestBars_ThatDoNotFitContinueInAnotherPlot(t *testing.T) {
	section := &report.Section{Scenario: "price"}
	for i := range 13 {
		section.Curves = append(section.Curves, reporttest.Bars("price", fmt.Sprintf("layout %d.", i), figure.PerEvent, 1, 2, 3, 4))
	}
	found := drawPlots(t, &report.Report{Sections: []*report.Section{section}})
	require.Len(t, found, 3)
	for name, want := range map[string][]int{"": {0, 1, 2, 3, 4, 5}, "-2": {6, 7, 8, 9, 10, 11}, "-3": {12}} {
		var shown []int
		for i := range 13 {
			if strings.Contains(found["price-ru-event-by-operation"+name+".svg"], fmt.Sprintf("layout %d.", i)) {
				shown = append(shown, i)
			}
		}
		require.Equal(t, want, shown)
	}
	require.True(t, strings.Contains(found["price-ru-event-by-operation-3.svg"], "price: request units by operation (3)"))
}
