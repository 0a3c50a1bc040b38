// Package reporttest provides a sample report for the tests of package report and package page.
package reporttest

import (
	"math"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/report"
)

// Hold returns a figure that is compared with a target.
func Hold(scenario, layout, metric string, value float64, unit string, target *figure.Target) figure.Figure {
	return figure.Figure{
		Scenario: scenario, Layout: layout, Metric: metric, Value: value, Unit: unit,
		Target: target, OK: target.Met(value), Modelled: true,
	}
}

// newCurve returns a curve with a value for each x.
func newCurve(scenario string, plot figure.Plot, name, unit string, of func(x float64) float64, xs ...float64) figure.Curve {
	c := figure.Curve{Scenario: scenario, Plot: plot, Name: name, Unit: unit}
	for _, x := range xs {
		c.Points = append(c.Points, figure.Point{X: x, Y: of(x)})
	}
	return c
}

// Bars returns a curve with a value for each phase of an event, from Save to
// cleanup.
func Bars(scenario, name, unit string, values ...float64) figure.Curve {
	c := figure.Curve{Scenario: scenario, Plot: figure.Bars, Name: name, Unit: unit}
	for i, label := range []string{"save", "peek", "dequeue", "clean-up"} {
		c.Points = append(c.Points, figure.Point{Label: label, Y: values[i]})
	}
	return c
}

// Sample returns a report with figures, curves and errors of every kind.
func Sample() *report.Report {
	stored := []float64{1e3, 1e4, 1e5, 1e6}
	tail := func(base, more float64) func(float64) float64 {
		return func(share float64) float64 { return base + more*math.Log10(1/(1-share)) }
	}
	var shares []float64
	for i := range 41 {
		shares = append(shares, 1-math.Pow(10, -float64(i)/10))
	}
	level := func(at float64) func(float64) float64 { return func(float64) float64 { return at } }
	linear := func(per float64) func(float64) float64 { return func(n float64) float64 { return n * per } }
	return &report.Report{
		Facts: report.Facts{
			Command: "go run ./bench/compare --seed 7", Commit: "0123456789ab", Machine: "A CPU, 2 cores, linux/amd64", Go: "go1.26.8",
			Began: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Took: 3723 * time.Second,
			Seed: 7, Where: "the embedded engine", Model: true,
		},
		Sections: []*report.Section{
			{
				Scenario: "worst-peek", About: "51,200 events of 1 KB in six drawers, fetched at once",
				Figures: []figure.Figure{
					Hold("worst-peek", "hub", "Peek with the domain's 10 s", 12.3456, "s", figure.AtMost(30)),
					Hold("worst-peek", "hub", "Peek, of the limit's", 1.5, "times", figure.AtMost(1.25)),
					Hold("worst-peek", "single", "RU, of the hub's", 218.4, "times", figure.AtLeast(20)),
					Hold("worst-peek", "single", "RU", 52_416.25, "RU", nil),
				},
				Curves: []figure.Curve{
					newCurve("worst-peek", figure.Percentiles, "hub peek", "ms", tail(9, 30), shares...),
					newCurve("worst-peek", figure.Percentiles, "hub dequeue", "ms", tail(6, 4), shares...),
					newCurve("worst-peek", figure.Percentiles, "original peek", "ms", tail(800, 900), shares...),
					newCurve("worst-peek", figure.Percentiles, "original dequeue", "ms", tail(400, 2500), shares...),
				},
			},
			{
				Scenario: "growth", About: "the cost of each operation at 10^3 to 10^6 stored events",
				Figures: []figure.Figure{Hold("growth", "hub", "slope of time, Save", 0.012, "log/log", figure.AtMost(0.1))},
				Curves: []figure.Curve{
					newCurve("growth", figure.Growth, "hub save", "RU", level(38.1), stored...),
					newCurve("growth", figure.Growth, "hub peek", "RU", level(30.2), stored...),
					newCurve("growth", figure.Growth, "hub dequeue", "RU", level(26), stored...),
					newCurve("growth", figure.Growth, "original save", "RU", linear(0.9), stored...),
					newCurve("growth", figure.Growth, "hub peek", "requests", level(5), stored...),
				},
			},
			{
				Scenario: "price", About: "what an event costs over its life",
				Curves: []figure.Curve{
					Bars("price", "hub, pessimistic", figure.PerEvent, 0.31, 0.0047, 0.0005, 0.002),
					Bars("price", "hub, standard", figure.PerEvent, 0.30, 0.0041, 0.0005, 0.002),
					Bars("price", "original, pessimistic", figure.PerEvent, 29.4, 3.1, 11.2, 10.5),
					Bars("price", "single, pessimistic", figure.PerEvent, 7.1, 1.2, 0, 5.7),
				},
			},
		},
	}
}
