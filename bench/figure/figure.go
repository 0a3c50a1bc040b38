// Package figure defines the result of a benchmark: a measured value, and whether it meets its
// target.
//
// A figure belongs to a scenario and a layout and has a metric, a value and a unit. A figure with a
// target must meet it; a figure without a target is reported for comparison. The scenario defines
// the meaning of a figure; package report shows it in a table or as JSON, and package page in
// plots.
package figure

import (
	"fmt"
	"strconv"
)

// A Figure is one measured value.
type Figure struct {
	Scenario string  `json:"scenario"`
	Layout   string  `json:"layout"`
	Metric   string  `json:"metric"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Target   *Target `json:"target"` // or nil
	OK       bool    `json:"ok"`     // true if the target is met or Target is nil
	Modelled bool    `json:"-"`      // true if the charges and latencies of the account are simulated
}

// A Target is a bound for a value.
type Target struct {
	Bound float64
	Least bool // true: the value must be at least Bound; false: at most Bound
}

// AtMost returns a target that a value misses if it is greater than bound.
func AtMost(bound float64) *Target { return &Target{Bound: bound} }

// AtLeast returns a target that a value misses if it is less than bound.
func AtLeast(bound float64) *Target { return &Target{Bound: bound, Least: true} }

// Met reports whether value meets t. Every value meets a nil target; NaN does
// not meet any other target.
func (t *Target) Met(value float64) bool {
	switch {
	case t == nil:
		return true
	case t.Least:
		return value >= t.Bound
	default:
		return value <= t.Bound
	}
}

// String returns the target with its direction: "≤ 0.5".
func (t *Target) String() string {
	sense := "≤"
	if t.Least {
		sense = "≥"
	}
	return sense + " " + strconv.FormatFloat(t.Bound, 'f', -1, 64)
}

// MarshalJSON encodes t as text, such as "≤ 0.5", because a number alone has no direction.
func (t *Target) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", t.String()), nil }
