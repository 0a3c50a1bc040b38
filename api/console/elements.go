package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// The HTML elements of pages. Functions that are called often are not inlined: inlining would copy
// the functions of package gomponents into each call, and the program would grow by 0.1 MB.

// bdi returns an untrusted text as an isolated element, so that right-to-left text does not reorder
// its surroundings.
//
//go:noinline
func bdi(text string) g.Node { return g.El("bdi", g.Text(text)) }

// code returns an element for a text that operators copy exactly, such as an id.
//
//go:noinline
func code(text string) g.Node { return h.Code(bdi(text)) }

// number returns a whole number with its digits in groups of three.
//
//go:noinline
func number(n int64) g.Node { return g.Text(groupDigits(n)) }

func groupDigits(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append(groups, digits[len(digits)-3:])
		digits = digits[:len(digits)-3]
	}
	text := sign + digits
	for _, group := range slices.Backward(groups) {
		text += "\u202f" + group // U+202F is a narrow no-break space
	}
	return text
}

// moment returns a time in UTC in the format of RFC 3339, or "–" for the zero time.
//
//go:noinline
func moment(t time.Time) g.Node {
	if t.IsZero() {
		return g.Text("–")
	}
	text := t.UTC().Format(time.RFC3339)
	return h.Time(h.DateTime(text), g.Text(text))
}

// age returns the time from at to now in its two largest units.
func age(at, now time.Time) string {
	if at.IsZero() {
		return "–"
	}
	return duration(now.Sub(at))
}

func duration(d time.Duration) string {
	d = max(0, d.Truncate(time.Second))
	units := []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if n := d / u.length; n > 0 || u.length == time.Second {
			text := strconv.Itoa(int(n)) + " " + u.name
			if i+1 < len(units) {
				if rest := (d % u.length) / units[i+1].length; rest > 0 {
					text += " " + strconv.Itoa(int(rest)) + " " + units[i+1].name
				}
			}
			return text
		}
	}
	return ""
}

// sortedKeys returns the keys of a map, sorted.
func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// indentJSON returns JSON with one member per line.
func indentJSON(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}

// anchor returns a link with an untrusted text.
//
//go:noinline
func anchor(href, text string) g.Node { return h.A(h.Href(href), bdi(text)) }

// A badgeKind is the style of a badge.
type badgeKind string

const (
	good badgeKind = "good"
	warn badgeKind = "warn"
	bad  badgeKind = "bad"
	mild badgeKind = "mild"
)

// badge returns a badge: a highlighted word, such as a state.
//
//go:noinline
func badge(kind badgeKind, word string) g.Node {
	return h.Span(h.Class("badge "+string(kind)), g.Text(word))
}

// notice returns a highlighted paragraph. Screen readers announce a notice of the kind bad
// immediately.
//
//go:noinline
func notice(kind badgeKind, nodes ...g.Node) g.Node {
	role := "status"
	if kind == bad {
		role = "alert"
	}
	return h.Div(h.Class("notice "+string(kind)), h.Role(role), g.Group(nodes))
}

// A fact is a name with a value, for the list that facts returns.
type fact struct {
	name  string
	value g.Node
}

// facts returns a list of names and values.
//
//go:noinline
func facts(all ...fact) g.Node {
	return h.Dl(h.Class("facts"), g.Map(all, func(f fact) g.Node {
		return h.Div(h.Dt(g.Text(f.name)), h.Dd(f.value))
	}))
}

// A column is the heading of a table's column.
type column struct {
	title    string
	isNumber bool
}

// A tableView is a table. Its first column contains the headings of the rows.
type tableView struct {
	caption string
	columns []column
	rows    [][]g.Node
	empty   string // sentence that replaces the table if it has no rows
}

func (t *tableView) render() g.Node {
	if len(t.rows) == 0 {
		return h.P(h.Class("empty"), g.Text(t.empty))
	}
	cells := func(row []g.Node) g.Node {
		var nodes g.Group
		for i, cell := range row {
			class := g.If(t.columns[i].isNumber, h.Class("number"))
			if i == 0 {
				nodes = append(nodes, h.Th(h.Scope("row"), class, cell))
				continue
			}
			nodes = append(nodes, h.Td(class, cell))
		}
		return h.Tr(nodes)
	}
	return h.Div(
		h.Class("scroll"), h.Role("region"), h.Aria("label", t.caption), h.TabIndex("0"),
		h.Table(
			h.Caption(g.Text(t.caption)),
			h.THead(h.Tr(g.Map(t.columns, func(c column) g.Node {
				return h.Th(h.Scope("col"), g.If(c.isNumber, h.Class("number")), g.Text(c.title))
			}))),
			h.TBody(g.Map(t.rows, cells)),
		),
	)
}

// pager returns links to the first and the next page of a list. It omits a link whose path is
// empty.
//
//go:noinline
func pager(first, next string) g.Node {
	if first == "" && next == "" {
		return nil
	}
	return h.Nav(
		h.Class("pager"), h.Aria("label", "Parts of the list"),
		g.If(first != "", h.A(h.Href(first), g.Text("First part"))),
		g.If(next != "", h.A(h.Href(next), h.Rel("next"), g.Text("Next part"))),
	)
}
