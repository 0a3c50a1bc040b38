// Package figure is what a benchmark says: one measured value, and whether it is
// good enough.
//
// A figure is of a scenario and a layout and has a metric, a value and a unit. One with a target
// must meet it; one without is reported for comparison. What a figure means is written once, by the
// scenario that measures it; how it is shown, in a table, as JSON or as a plot, is the business of
// package report.
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
	OK       bool    `json:"ok"`     // the target is met, or Target is nil
	Modelled bool    `json:"-"`      // the account is a model, so that what it charges and how long it takes are too
}

// A Target is the bound that a value is held to.
type Target struct {
	Bound float64
	Least bool // the value must be at least Bound; else at most
}

// AtMost is a target that larger values miss.
func AtMost(bound float64) *Target { return &Target{Bound: bound} }

// AtLeast is a target that smaller values miss.
func AtLeast(bound float64) *Target { return &Target{Bound: bound, Least: true} }

// Met reports whether value meets t. No target is always met; a value that is no
// number never meets one.
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

// String is the target with its sense: "≤ 0.5".
func (t *Target) String() string {
	sense := "≤"
	if t.Least {
		sense = "≥"
	}
	return sense + " " + strconv.FormatFloat(t.Bound, 'f', -1, 64)
}

// MarshalJSON gives the text of t, for the sense belongs to the number.
func (t *Target) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", t.String()), nil }
