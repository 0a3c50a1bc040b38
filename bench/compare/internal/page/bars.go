package page

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/report"
)

// A barRow draws the bars of one curve. The bar charts of the plot library begin at zero, which has
// no logarithm; the bars of a barRow begin at the axis.
type barRow struct {
	color   color.Color
	heights []float64 // heights by group; 0 means no bar
	from    float64   // position of the bar in its group, and its width
	wide    float64
	text    draw.TextStyle
}

// Plot draws the bars, each with its value above.
func (r *barRow) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for group, height := range r.heights {
		if height <= 0 {
			continue
		}
		left, right := x(float64(group)+r.from), x(float64(group)+r.from+r.wide)
		bar := vg.Rectangle{Min: vg.Point{X: left, Y: c.Min.Y}, Max: vg.Point{X: right, Y: y(math.Log10(height))}}
		c.SetColor(r.color)
		c.Fill(bar.Path())
		c.FillText(r.text, vg.Point{X: (left + right) / 2, Y: bar.Max.Y + vg.Points(3)}, report.FormatRounded(height, 3))
	}
}

// DataRange returns the range of the values; the groups are at fixed positions.
func (r *barRow) DataRange() (xmin, xmax, ymin, ymax float64) {
	ymin, ymax = math.Inf(1), math.Inf(-1)
	for _, height := range r.heights {
		if height > 0 {
			ymin, ymax = min(ymin, math.Log10(height)), max(ymax, math.Log10(height))
		}
	}
	return -0.5, float64(len(r.heights)) - 0.5, ymin, ymax
}

// Thumbnail draws the sample of the legend.
func (r *barRow) Thumbnail(c *draw.Canvas) {
	c.SetColor(r.color)
	c.Fill(vg.Rectangle{Min: vg.Point{X: c.Max.X - vg.Points(12), Y: c.Min.Y}, Max: c.Max}.Path())
}

// drawBars draws a group of bars for each label, in the order in which the labels
// occur. A group has a bar of each curve.
func drawBars(p *plot.Plot, l *plot.Legend, curves []figure.Curve) error {
	const wide = 0.8 // share of a group's width that is covered by bars
	labels := labelsOf(curves)
	text := p.X.Tick.Label
	text.Font = sansFont(9)
	text.XAlign, text.YAlign, text.Rotation = draw.XLeft, draw.YCenter, math.Pi/2 // rotated, so that the text is as narrow as a bar
	for i, c := range curves {
		r := &barRow{
			color: lineColour(i), heights: make([]float64, len(labels)), text: text,
			wide: wide / float64(len(curves)), from: wide * (float64(i)/float64(len(curves)) - 0.5),
		}
		for _, point := range c.Points {
			r.heights[slices.Index(labels, point.Label)] = point.Y
		}
		p.Add(r)
		l.Add(c.Name, r)
	}
	p.NominalX(labels...)
	p.X.Label.Text = "operation"
	p.X.Padding = 0
	p.Y.Max += 0.12 * (p.Y.Max - p.Y.Min) // room for the number above the highest bar
	p.Y.Min -= 0.3                        // makes the lowest bar visible
	roundAxis(&p.Y)
	return nil
}

// labelsOf returns the distinct labels of all points.
func labelsOf(curves []figure.Curve) []string {
	var labels []string
	for _, c := range curves {
		for _, point := range c.Points {
			if !slices.Contains(labels, point.Label) {
				labels = append(labels, point.Label)
			}
		}
	}
	return labels
}

var (
	_ plot.DataRanger  = (*barRow)(nil)
	_ plot.Thumbnailer = (*barRow)(nil)
	_ plot.Plotter     = (*barRow)(nil)
)
