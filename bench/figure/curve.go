package figure

// A Curve is a line, or a row of bars, in a plot. Curves of a scenario with the
// same Plot and Unit are drawn in one picture.
type Curve struct {
	Scenario string
	Plot     Plot
	Name     string // name in the legend, such as "hub" or "hub peek"
	Unit     string // unit of Y, such as "ms" or "RU"
	Points   []Point
}

// A Point is one value of a Curve. Plot determines whether its X or its Label is
// used.
type Point struct {
	X     float64
	Y     float64
	Label string
}

// A Plot is a kind of plot.
type Plot string

// The kinds of plots.
const (
	Percentiles Plot = "by percentile"    // the X of a point is the share of operations, from 0 to below 1, such as 0.99
	Growth      Plot = "by stored events" // the X of a point is the number of stored events
	Bars        Plot = "by operation"     // the Label of a point is the operation
)

// PerEvent is the unit of a cost per event. A bar chart with this unit has a bar for each phase
// from Save to cleanup. The price list has a row for each such chart, with the bars and their sum.
const PerEvent = "RU/event"
