package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// columns is how wide a table on a terminal may be.
const columns = 100

// WriteTable shows one section of r on a terminal: a row for each figure, grouped as
// they came, and what was in the way, if it was not completed.
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
	metricCell = 1 // this column gives way to the others
	valueCell  = 2 // this one is flush right
)

// writeRows aligns rows. The columns are as wide as what is in them, except the metric, which is
// cut where the rows would not fit.
func writeRows(b *strings.Builder, rows [][cells]string) {
	var widths [cells]int
	for i := range rows {
		for at, cell := range rows[i] {
			widths[at] = max(widths[at], utf8.RuneCountInString(cell))
		}
	}
	taken := 0
	for at, width := range widths {
		if at != metricCell {
			taken += 2 + width
		}
	}
	widths[metricCell] = min(widths[metricCell], max(columns-taken-2, len("metric")))
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

// Mark says of a figure whether it meets its target, and whether it is modelled while
// others are measured.
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
