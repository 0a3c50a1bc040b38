package page

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/report"
)

// isPositive reports whether v has a logarithm. All axes are logarithmic, because the plots compare
// ratios. Points are drawn at their decimal logarithms on linear axes, and the ticks show the
// values. The logarithmic scale of the plot library would leave no room for titles.

func isPositive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }

// logPoints returns the positions of points whose x values are given by x.
func logPoints(points []figure.Point, x func(figure.Point) float64) plotter.XYs {
	drawn := make(plotter.XYs, len(points))
	for i, p := range points {
		drawn[i] = plotter.XY{X: math.Log10(x(p)), Y: math.Log10(p.Y)}
	}
	return drawn
}

// roundAxis extends an axis to round numbers. It has a minimum length, so that noise
// does not look large.
func roundAxis(a *plot.Axis) {
	const narrow = 8
	least, most := roundDown(math.Pow(10, a.Min)), roundUp(math.Pow(10, a.Max))
	if most/least < narrow {
		least, most = roundDown(least/2), roundUp(most*2)
	}
	a.Min, a.Max = math.Log10(least), math.Log10(most)
}

// steps are the round numbers in a decade.
var steps = []float64{1, 2, 5}

// tolerance is the relative difference up to which a number counts as round.
const tolerance = 1e-9

// roundDown returns the largest round number that is not greater than v.
func roundDown(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	down := decade
	for _, step := range steps {
		if step*decade <= v*(1+tolerance) {
			down = step * decade
		}
	}
	return down
}

func roundUp(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range steps {
		if step*decade >= v*(1-tolerance) {
			return step * decade
		}
	}
	return 10 * decade
}

// tickMarks labels the round numbers of an axis with their values. On a long axis it labels only
// powers of ten.
func tickMarks(least, most float64) []plot.Tick {
	const long = 2.5
	labels := steps
	if most-least > long {
		labels = steps[:1]
	}
	var marks []plot.Tick
	for decade := math.Floor(least); decade <= most; decade++ {
		for step := 1.0; step < 10; step++ {
			mark := plot.Tick{Value: decade + math.Log10(step)}
			if slices.Contains(labels, step) {
				mark.Label = report.FormatNumber(step * math.Pow(10, decade))
			}
			if least-tolerance <= mark.Value && mark.Value <= most+tolerance {
				marks = append(marks, mark)
			}
		}
	}
	return marks
}

// percentileX returns the position of a percentile on its axis: the reciprocal of the share above
// it. This is the scale of HDR plots, on which each additional nine has the same width.
func percentileX(p figure.Point) float64 { return 1 / (1 - p.X) }

// rarityTicks marks 50 %, 90 %, 99 % and so on.
func rarityTicks(_, most float64) []plot.Tick {
	marks := []plot.Tick{{Value: 0, Label: "0 %"}, {Value: math.Log10(2), Label: "50 %"}}
	for nines := 1; float64(nines) <= most+tolerance; nines++ {
		label := "90"
		switch {
		case nines == 2:
			label = "99"
		case nines > 2:
			label = "99." + strings.Repeat("9", nines-2)
		}
		marks = append(marks, plot.Tick{Value: float64(nines), Label: label + " %"})
	}
	return marks
}
