// Package duration formats and parses durations of XML Schema (ISO 8601), such as PT1M30S and P14D.
package duration

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var errFormat = errors.New("want a duration such as PT30S, PT5M or P14D")

// Parse parses a duration. If it exceeds the range of time.Duration, as Longest does, Parse returns the maximum
// time.Duration. It refuses years and months, because their length varies.
func Parse(s string) (time.Duration, error) {
	rest, found := strings.CutPrefix(s, "P")
	if !found || rest == "" {
		return 0, errFormat
	}
	days, clock, hasClock := strings.Cut(rest, "T")
	total, err := addUnits(days, map[byte]time.Duration{'W': 7 * day, 'D': day})
	if err != nil || hasClock && clock == "" {
		return 0, errFormat
	}
	more, err := addUnits(clock, map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second})
	if err != nil {
		return 0, errFormat
	}
	if total += more; total > math.MaxInt64/float64(time.Nanosecond) {
		return math.MaxInt64, nil
	}
	return time.Duration(total), nil
}

// addUnits returns the sum of the durations in s. Each duration is a number followed by its unit.
func addUnits(s string, units map[byte]time.Duration) (float64, error) {
	total := 0.0
	for s != "" {
		n := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if n < 1 {
			return 0, errFormat
		}
		unit, known := units[s[n]]
		number, err := strconv.ParseFloat(s[:n], 64)
		if !known || err != nil {
			return 0, errFormat
		}
		delete(units, s[n]) // a unit may occur only once
		total += number * float64(unit)
		s = s[n+1:]
	}
	return total, nil
}

// Longest is the longest duration in .NET. Clients use it for "no limit".
const Longest = "P10675199DT2H48M5.4775807S"

// Format formats a duration, which must not be negative.
func Format(d time.Duration) string {
	if d == 0 {
		return "PT0S"
	}
	var b strings.Builder
	b.WriteByte('P')
	if days := d / day; days > 0 {
		b.WriteString(strconv.FormatInt(int64(days), 10) + "D")
		d -= days * day
	}
	if d > 0 {
		b.WriteByte('T')
	}
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"H", time.Hour}, {"M", time.Minute}} {
		if n := d / unit.length; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + unit.letter)
			d -= n * unit.length
		}
	}
	if d > 0 {
		b.WriteString(strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S")
	}
	return b.String()
}
