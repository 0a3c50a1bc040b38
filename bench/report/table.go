package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// columns is the maximum width of a table on a terminal.
const columns = 100

// WriteTable writes one section of r to a terminal: a row for each figure, in the
// order in which they were reported, and the error of an incomplete scenario.
func (r *Report) WriteTable(w io.Writer, s *Section) error {
	rows := [][cells]string{{"layout", "metric", "value", "unit", "target", ""}}
	for _, f := range s.Figures {
		rows = append(rows, [cells]string{f.Layout, f.Metric, FormatNumber(f.Value), f.Unit, FormatTarget(f.Target), r.Mark(f)})
	}
	var b strings.Builder
	fmt.Fprintln(&b, terminal.Clip(s.Scenario+": "+s.About, columns))
	if len(s.Figures) > 0 {
		writeRows(&b, rows)
	}
	if s.Err != nil {
		fmt.Fprintf(&b, "  not complete: %v\n", s.Err)
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

const (
	cells      = 6
	metricCell = 1 // index of the column that is shortened if a row is too wide
	valueCell  = 2 // index of the column that is right-aligned
)

// writeRows aligns rows. Each column is as wide as its contents, except the metric, which is cut
// if the rows would be too wide.
func writeRows(b *strings.Builder, rows [][cells]string) {
	var widths [cells]int
	for i := range rows {
		for at, cell := range rows[i] {
			widths[at] = max(widths[at], utf8.RuneCountInString(cell))
		}
	}
	used := 0
	for at, width := range widths {
		if at != metricCell {
			used += 2 + width
		}
	}
	widths[metricCell] = min(widths[metricCell], max(columns-used-2, len("metric")))
	for i := range rows {
		var line strings.Builder
		for at, cell := range rows[i] {
			cell = terminal.Clip(cell, widths[at])
			gap := strings.Repeat(" ", widths[at]-utf8.RuneCountInString(cell))
			if at == valueCell {
				line.WriteString("  " + gap + cell)
			} else {
				line.WriteString("  " + cell + gap)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// Mark returns whether a figure meets its target, and, in a report that also contains measured
// figures, whether the figure is modelled.
func (r *Report) Mark(f figure.Figure) string {
	var marks []string
	switch {
	case !f.OK:
		marks = append(marks, "MISSED")
	case f.Target != nil:
		marks = append(marks, "ok")
	}
	if f.Modelled && r.isMixed() {
		marks = append(marks, "modelled")
	}
	return strings.Join(marks, ", ")
}
