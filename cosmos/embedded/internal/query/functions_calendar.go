package query

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var calendarFunctions = map[string]function{
	"YEAR":  ofDate(func(t time.Time) Value { return numberValue(float64(t.Year())) }),
	"MONTH": ofDate(func(t time.Time) Value { return numberValue(float64(t.Month())) }),
	"DAY":   ofDate(func(t time.Time) Value { return numberValue(float64(t.Day())) }),
	"IS_DATETIME": typeCheck(func(v Value) bool {
		_, ok := v.parseDate()
		return ok && dateForm.Match(v.Text)
	}),
	"DATETIMEFORMAT": {2, 2, dateTimeFormat},
}

// dateForm matches the documented formats of dates.
var dateForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d{1,7})?)?Z?$`)

// dateSpecifiers maps the specifiers in a format of DATETIMEFORMAT to layouts of package time.
var dateSpecifiers = map[string]string{
	"yyyy": "2006", "yy": "06", "MMMM": "January", "MMM": "Jan", "MM": "01", "M": "1", "dddd": "Monday", "ddd": "Mon", "dd": "02", "d": "2",
	"HH": "15", "hh": "03", "h": "3", "mm": "04", "m": "4", "ss": "05", "s": "5", "tt": "PM",
}

// dateTimeFormat formats a date with a .NET format: yyyy, MM, dd, HH, mm, ss and their short forms, and f or F for
// digits of a second (F omits trailing zeros). A backslash escapes a letter. All other characters are copied.
func dateTimeFormat(a []Value) Value {
	t, ok := a[0].parseDate()
	if !ok || a[1].Kind != String {
		return undefined
	}
	format := string(a[1].Text)
	var text strings.Builder
	for len(format) > 0 && text.Len() <= maxText {
		n := len(format) - len(strings.TrimLeft(format, format[:1]))
		switch layout, known := dateSpecifiers[format[:n]]; {
		case known:
			text.WriteString(t.Format(layout))
		case n == 1 && format[0] == 'H':
			text.WriteString(strconv.Itoa(t.Hour()))
		case (format[0] == 'f' || format[0] == 'F') && n <= len("fffffff"):
			digits := t.Format(".0000000")[1:][:n]
			if format[0] == 'F' {
				digits = strings.TrimRight(digits, "0")
			}
			text.WriteString(digits)
		case strings.Contains("yMdHhmstfF", format[:1]):
			return undefined // unknown specifier
		case format[0] == '\\':
			n = min(2, len(format))
			text.WriteString(format[1:n])
		default:
			n = 1
			text.WriteByte(format[0])
		}
		format = format[n:]
	}
	if text.Len() > maxText {
		return undefined
	}
	return textValue(text.String())
}

// currentTimePlus compiles NOW and AGO, which add to the current time, or subtract from it.
func currentTimePlus(sign float64) func(*compiler, callNode, []expr) (expr, error) {
	return func(c *compiler, n callNode, args []expr) (expr, error) {
		if len(args) == 1 {
			return nil, &Error{n.textOffset(), "function " + n.name + " takes a number after the part of a date"}
		}
		return shiftedClockExpr{c.now, args, sign}, nil
	}
}

// A shiftedClockExpr is the current time, plus or minus some date parts.
type shiftedClockExpr struct {
	now  func() time.Time
	args []expr // either empty, or a date part and a number
	sign float64
}

func (e shiftedClockExpr) evalRow(slots *Slots) Value {
	now := dateValue(e.now())
	if len(e.args) == 0 {
		return now
	}
	part, n := e.args[0].evalRow(slots), e.args[1].evalRow(slots)
	n.Num *= e.sign
	return dateTimeAdd([]Value{part, n, now})
}
