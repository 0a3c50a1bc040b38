package page

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/record"
	"github.com/messagehub/messagehub/bench/report"
)

// A picture contains those curves of a scenario that have the same plot and unit.
type picture struct {
	scenario string
	plot     figure.Plot
	unit     string
	part     int // number of this picture among the pictures of the same scenario, plot and unit, from 1
	curves   []figure.Curve
}

// maxBars is the maximum number of bars in a group, because narrower bars have no room for their
// numbers. Additional curves are drawn in another picture.
const maxBars = 6

// groupPictures groups curves into pictures, in the order of their first curves. It omits points
// that cannot be drawn, and curves that have no drawable point.
func groupPictures(curves []figure.Curve) []*picture {
	var all []*picture
	for _, c := range curves {
		c.Points = drawablePoints(c)
		if len(c.Points) == 0 {
			continue
		}
		var last *picture // latest picture of this plot and unit
		for _, p := range all {
			if p.scenario == c.Scenario && p.plot == c.Plot && p.unit == c.Unit {
				last = p
			}
		}
		switch {
		case last == nil:
			last = &picture{scenario: c.Scenario, plot: c.Plot, unit: c.Unit, part: 1}
			all = append(all, last)
		case last.plot == figure.Bars && len(last.curves) == maxBars:
			last = &picture{scenario: c.Scenario, plot: c.Plot, unit: c.Unit, part: last.part + 1}
			all = append(all, last)
		}
		last.curves = append(last.curves, c)
	}
	return all
}

// drawablePoints returns the points of c that can be drawn on logarithmic axes.
func drawablePoints(c figure.Curve) []figure.Point {
	var points []figure.Point
	for _, p := range c.Points {
		ok := isPositive(p.Y)
		switch c.Plot {
		case figure.Percentiles:
			ok = ok && 0 <= p.X && p.X < 1
		case figure.Growth:
			ok = ok && isPositive(p.X)
		case figure.Bars: // bars have labels instead of X values
		}
		if ok {
			points = append(points, p)
		}
	}
	return points
}

// titleText describes the contents of the picture.
func (p *picture) titleText() string {
	title := fmt.Sprintf("%s: %s %s", p.scenario, subjectOf(p.unit), p.plot)
	if p.part > 1 {
		title += fmt.Sprintf(" (%d)", p.part)
	}
	return title
}

// fileName returns the name of the picture's file.
func (p *picture) fileName() string {
	words := strings.FieldsFunc(strings.ToLower(fmt.Sprintf("%s %s %s", p.scenario, p.unit, p.plot)), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if p.part > 1 {
		words = append(words, strconv.Itoa(p.part))
	}
	return strings.Join(words, "-") + ".svg"
}

// subjectOf returns the name of the quantity that is measured in a unit.
func subjectOf(unit string) string {
	switch unit {
	case "s", "ms", "µs":
		return "time"
	case "RU", figure.PerEvent:
		return "request units"
	default:
		return unit
	}
}

// WritePlots writes the curves of r as pictures into a folder.
func WritePlots(r *report.Report, folder string) error {
	for _, p := range groupPictures(r.Curves()) {
		svg, err := p.drawSVG()
		if err != nil {
			return fmt.Errorf("draw %s: %w", p.titleText(), err)
		}
		if err := record.WriteFile(filepath.Join(folder, p.fileName()), svg); err != nil {
			return err
		}
	}
	return nil
}

// drawSVG draws p as SVG.
func (p *picture) drawSVG() ([]byte, error) {
	canvas, legend := newPlot(p.titleText()), newLegend()
	canvas.Y.Label.Text = subjectOf(p.unit)
	if canvas.Y.Label.Text != p.unit {
		canvas.Y.Label.Text += " (" + p.unit + ")"
	}
	draw := map[figure.Plot]func(*plot.Plot, *plot.Legend, []figure.Curve) error{
		figure.Percentiles: drawPercentiles, figure.Growth: drawGrowth, figure.Bars: drawBars,
	}[p.plot]
	if draw == nil {
		return nil, fmt.Errorf("no such plot: %q", p.plot)
	}
	if err := draw(canvas, legend, p.curves); err != nil {
		return nil, err
	}
	return encodeSVG(canvas, legend)
}
