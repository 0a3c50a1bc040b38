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
	Percentiles Plot = "by percentile"    // X is a share of all, from 0 to below 1: 0.99
	Growth      Plot = "by stored events" // X is how many there are
	Bars        Plot = "by operation"     // Label is the operation
)

// PerEvent is the unit of what an event costs over its life. Bars of it, one for each
// part of the life, are a row of the price list: they add up.
const PerEvent = "RU/event"
