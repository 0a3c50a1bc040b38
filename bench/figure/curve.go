package figure

// A Curve is one line, or one row of bars, of a plot. The curves of a scenario that
// have their Plot and their Unit in common are drawn in one picture.
type Curve struct {
	Scenario string
	Plot     Plot
	Name     string // of the line, in the legend: "hub", or "hub peek"
	Unit     string // of Y: "ms", "RU", "requests"
	Points   []Point
}

// A Point is one value of a Curve. Its X or its Label is used, as the Plot says.
type Point struct {
	X     float64
	Y     float64
	Label string
}

// A Plot is what is drawn over what.
type Plot string

// The plots that there are.
const (
	Percentiles Plot = "percentiles" // X is a share of all, from 0 to below 1: 0.99
	Growth      Plot = "growth"      // X is the number of stored events
	Bars        Plot = "bars"        // Label is what the bar is of: an operation
)
