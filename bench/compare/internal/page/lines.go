package page

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/messagehub/messagehub/bench/figure"
)

// drawPercentiles draws a line for each curve: the times that one operation in ten, in a hundred
// and in a thousand exceeds.
func drawPercentiles(p *plot.Plot, l *plot.Legend, curves []figure.Curve) error {
	for i, c := range curves {
		line, err := plotter.NewLine(logPoints(c.Points, percentileX))
		if err != nil {
			return err
		}
		line.LineStyle = lineStyle(i)
		p.Add(line)
		l.Add(c.Name, line)
	}
	p.X.Label.Text = "percentile"
	p.X.Tick.Marker = plot.TickerFunc(rarityTicks)
	p.X.Min, p.X.Max = 0, max(1, p.X.Max)
	roundAxis(&p.Y)
	return nil
}

// drawGrowth draws a line with its points for each curve. A horizontal line means
// that the cost does not depend on the number of stored events; the slope is the
// exponent.
func drawGrowth(p *plot.Plot, l *plot.Legend, curves []figure.Curve) error {
	for i, c := range curves {
		stored := func(p figure.Point) float64 { return p.X }
		line, marks, err := plotter.NewLinePoints(logPoints(c.Points, stored))
		if err != nil {
			return err
		}
		line.LineStyle = lineStyle(i)
		marks.GlyphStyle = draw.GlyphStyle{Color: lineColour(i), Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
		p.Add(line, marks)
		l.Add(c.Name, line, marks)
	}
	p.X.Label.Text = "stored events"
	roundAxis(&p.X)
	roundAxis(&p.Y)
	return nil
}
