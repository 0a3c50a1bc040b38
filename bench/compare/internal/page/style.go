package page

import (
	"bytes"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a picture, and the space around it.
const (
	width  = 10 * vg.Inch
	height = 4.5 * vg.Inch
	margin = 0.2 * vg.Inch
)

// colours are the Okabe-Ito palette, which colour-blind readers can distinguish, without its
// yellow, which is invisible on white.
var colours = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	color.RGBA{R: 0x44, G: 0x44, B: 0x44, A: 0xff},
}

// dashes distinguish lines that have the same colour.
var dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}}

func lineColour(i int) color.Color { return colours[i%len(colours)] }

// lineStyle returns the style of line i of a plot.
func lineStyle(i int) draw.LineStyle {
	return draw.LineStyle{Color: lineColour(i), Width: vg.Points(1.6), Dashes: dashes[(i+i/len(colours))%len(dashes)]}
}

var grey = color.Gray{Y: 0xdd}

// sansFont returns a font that most machines have, under this name or as Arial or
// Helvetica, which have the same widths.
func sansFont(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// newPlot returns an empty plot.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(12)
	p.Title.TextStyle.Font = sansFont(14)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = sansFont(12)
		axis.Label.Padding = vg.Points(6)
		axis.Tick.Label.Font = sansFont(11)
		axis.Tick.Length = vg.Points(5)
		axis.Tick.Marker = plot.TickerFunc(tickMarks)
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = grey, grey
	p.Add(grid)
	return p
}

func newLegend() *plot.Legend {
	l := plot.NewLegend()
	l.Top, l.Left = true, true
	l.TextStyle.Font = sansFont(11)
	l.Padding = vg.Points(4)
	l.ThumbnailWidth = vg.Points(26)
	return &l
}

// encodeSVG draws a plot, and its legend beside the plot. The background is white, because the
// surrounding page may be dark.
func encodeSVG(p *plot.Plot, l *plot.Legend) ([]byte, error) {
	c := vgsvg.New(width, height)
	page := draw.New(c)
	page.SetColor(color.White)
	page.Fill(page.Path())
	page = draw.Crop(page, margin, -margin, margin, -margin)
	beside := l.Rectangle(page).Size().X + 2*margin
	p.Draw(draw.Crop(page, 0, -beside, 0, 0))
	below := p.Title.TextStyle.Rectangle(p.Title.Text).Size().Y + p.Title.Padding
	l.Draw(draw.Crop(page, page.Size().X-beside+margin, 0, 0, -below))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), nil
}
