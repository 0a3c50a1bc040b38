package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/bench/figure"
)

// FormatNumber formats v for people: four significant digits, whole numbers without a
// fraction, and integer digits in groups of three.
func FormatNumber(v float64) string { return FormatRounded(v, 4) }

// FormatRounded is FormatNumber with a different number of digits.
func FormatRounded(v float64, digits int) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "none"
	case math.IsInf(v, 0), size != 0 && size < 1e-4:
		return strconv.FormatFloat(v, 'g', digits, 64)
	}
	fraction := 0
	if v != math.Trunc(v) {
		fraction = max(0, digits-1-int(math.Floor(math.Log10(size))))
	}
	whole, rest, _ := strings.Cut(strconv.FormatFloat(v, 'f', fraction, 64), ".")
	if rest = strings.TrimRight(rest, "0"); rest != "" {
		rest = "." + rest
	}
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return whole + rest
}

// FormatTarget formats a target for people; a nil target is "".
func FormatTarget(t *figure.Target) string {
	switch {
	case t == nil:
		return ""
	case t.Least:
		return "≥ " + FormatNumber(t.Bound)
	default:
		return "≤ " + FormatNumber(t.Bound)
	}
}
