package query

import (
	"bytes"
	"math"
	"math/big"
	"time"
)

// Dates are strings in UTC; the engine writes seven digits of a second. Ticks are 100 ns, timestamps are milliseconds,
// both since 1970.
const (
	dateFormat = "2006-01-02T15:04:05.0000000Z"
	tick       = 100 * time.Nanosecond
)

var dateFunctions = map[string]function{
	"DATETIMEADD":       {3, 3, dateTimeAdd},
	"DATETIMEBIN":       {2, 4, dateTimeBin},
	"DATETIMEDIFF":      {3, 3, dateTimeDiff},
	"DATETIMEFROMPARTS": {3, 7, dateTimeFromParts},
	"DATETIMEPART":      {2, 2, dateTimePart},
	"DATETIMETOTICKS": ofDate(func(t time.Time) Value {
		return numberValue(ticksOf(t))
	}),
	"DATETIMETOTIMESTAMP": ofDate(func(t time.Time) Value {
		return numberValue(float64(t.UnixMilli()))
	}),
	"TICKSTODATETIME": ofWhole(func(n int64) Value {
		const second = int64(time.Second / tick)
		return dateValue(time.Unix(floorDiv(n, second), (n-floorDiv(n, second)*second)*int64(tick)))
	}),
	"TIMESTAMPTODATETIME": ofWhole(func(n int64) Value { return dateValue(time.UnixMilli(n)) }),
}

func ofDate(f func(t time.Time) Value) function {
	return function{1, 1, func(a []Value) Value {
		t, ok := a[0].parseDate()
		if !ok {
			return undefined
		}
		return f(t)
	}}
}

func ofWhole(f func(n int64) Value) function {
	return function{1, 1, func(a []Value) Value {
		n, ok := a[0].asInt64()
		if !ok {
			return undefined
		}
		return f(n)
	}}
}

func dateValue(t time.Time) Value {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return undefined
	}
	return textValue(t.Format(dateFormat))
}

func ticksOf(t time.Time) float64 {
	return float64(t.Unix())*float64(time.Second/tick) + float64(t.Nanosecond()/int(tick))
}

// maxDate is the maximum length of a date.
const maxDate = 64

func (v Value) parseDate() (time.Time, bool) {
	if v.Kind != String || len(v.Text) > maxDate {
		return time.Time{}, false
	}
	for _, layout := range []string{"2006-01-02T15:04:05Z", "2006-01-02T15:04:05", "2006-01-02T15:04Z", "2006-01-02", "2006-01-02Z", "2006-01-02 15:04:05Z", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, string(v.Text)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// A datePart is a unit of time. Years and months have no fixed length.
type datePart struct {
	months int
	length time.Duration
}

var (
	year  = datePart{months: 12}
	month = datePart{months: 1}
	day   = datePart{length: 24 * time.Hour}
	hour  = datePart{length: time.Hour}
	mins  = datePart{length: time.Minute}
	secs  = datePart{length: time.Second}
	milli = datePart{length: time.Millisecond}
	micro = datePart{length: time.Microsecond}
	nano  = datePart{length: time.Nanosecond}
)

var dateParts = map[string]datePart{
	"year": year, "yyyy": year, "yy": year, "month": month, "mm": month, "m": month, "day": day, "dd": day, "d": day,
	"hour": hour, "hh": hour, "minute": mins, "mi": mins, "n": mins, "second": secs, "ss": secs, "s": secs,
	"millisecond": milli, "ms": milli, "microsecond": micro, "mcs": micro, "nanosecond": nano, "ns": nano,
}

func (v Value) parseDatePart() (datePart, bool) {
	if v.Kind != String {
		return datePart{}, false
	}
	part, ok := dateParts[string(bytes.ToLower(v.Text))]
	return part, ok
}

func dateTimeAdd(a []Value) Value {
	part, ok := a[0].parseDatePart()
	n, whole := a[1].asInt64()
	t, isDate := a[2].parseDate()
	if !ok || !whole || !isDate || math.Abs(float64(n)) > float64(math.MaxInt64/max(1, part.length)) {
		return undefined
	}
	if part.months == 0 {
		return dateValue(t.Add(time.Duration(n) * part.length))
	}
	if math.Abs(float64(n)) > 12*9999 {
		return undefined
	}
	months := int(n) * part.months
	added := t.AddDate(0, months, 0)
	if added.Day() != t.Day() { // if the month is too short for the day, use the last day of the month
		added = added.AddDate(0, 0, -added.Day())
	}
	return dateValue(added)
}

// dateTimeDiff counts how many boundaries of a date part lie between two dates.
func dateTimeDiff(a []Value) Value {
	part, ok := a[0].parseDatePart()
	from, isDate := a[1].parseDate()
	to, areDates := a[2].parseDate()
	if !ok || !isDate || !areDates {
		return undefined
	}
	return numberValue(float64(part.partsSince1970(to) - part.partsSince1970(from)))
}

// partsSince1970 returns the number of whole parts since 1970.
func (p datePart) partsSince1970(t time.Time) int64 {
	if p.months > 0 {
		return floorDiv(int64(t.Year()-1970)*12+int64(t.Month()-1), int64(p.months))
	}
	if p.length >= time.Second {
		return floorDiv(t.Unix(), int64(p.length/time.Second))
	}
	return t.Unix()*int64(time.Second/p.length) + int64(t.Nanosecond())/int64(p.length)
}

func floorDiv(a, b int64) int64 {
	n := a / b
	if a%b < 0 {
		n--
	}
	return n
}

func dateTimePart(a []Value) Value {
	part, ok := a[0].parseDatePart()
	t, isDate := a[1].parseDate()
	if !ok || !isDate {
		return undefined
	}
	var n int
	switch part {
	case year:
		n = t.Year()
	case month:
		n = int(t.Month())
	case day:
		n = t.Day()
	case hour:
		n = t.Hour()
	case mins:
		n = t.Minute()
	case secs:
		n = t.Second()
	default:
		n = t.Nanosecond() / int(part.length)
	}
	return numberValue(float64(n))
}

// dateTimeFromParts returns a date, given year, month and day, and optionally smaller parts down to ticks.
func dateTimeFromParts(a []Value) Value {
	parts := [7]int64{}
	for i, v := range a {
		n, ok := v.asInt64()
		if !ok || n < 0 || n > 9999999 {
			return undefined
		}
		parts[i] = n
	}
	t := time.Date(int(parts[0]), time.Month(parts[1]), int(parts[2]), int(parts[3]), int(parts[4]), int(parts[5]), int(parts[6])*int(tick), time.UTC)
	if t.Year() != int(parts[0]) || int64(t.Month()) != parts[1] || int64(t.Day()) != parts[2] ||
		parts[3] > 23 || parts[4] > 59 || parts[5] > 59 {
		return undefined // one of the parts is out of range
	}
	return dateValue(t)
}

// dateTimeBin rounds a date down to a multiple of a date part. It counts from 1970 or a given origin.
func dateTimeBin(a []Value) Value {
	t, isDate := a[0].parseDate()
	part, ok := a[1].parseDatePart()
	size, origin := int64(1), time.Unix(0, 0)
	if len(a) > 2 {
		n, whole := a[2].asInt64()
		size, ok = n, ok && whole && n > 0
	}
	if len(a) > 3 {
		from, is := a[3].parseDate()
		origin, isDate = from, isDate && is
	}
	if !ok || !isDate || part.months > 0 || size > int64(math.MaxInt64/part.length) {
		return undefined
	}
	return dateValue(binStart(t, origin, time.Duration(size)*part.length))
}

// binStart returns the start of the bin that contains t. It needs big integers, because an origin may be more than 292
// years (the range of time.Duration) away.
func binStart(t, origin time.Time, bin time.Duration) time.Time {
	second := big.NewInt(int64(time.Second))
	since := big.NewInt(t.Unix() - origin.Unix())
	since.Add(since.Mul(since, second), big.NewInt(int64(t.Nanosecond()-origin.Nanosecond())))
	length := big.NewInt(int64(bin))
	since.Sub(since, new(big.Int).Mod(since, length)) // the result of Mod is never negative
	seconds, rest := new(big.Int).DivMod(since, second, new(big.Int))
	return time.Unix(origin.Unix()+seconds.Int64(), int64(origin.Nanosecond())+rest.Int64())
}
