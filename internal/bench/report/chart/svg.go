package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// palette are colours that the colour-blind tell apart (M. Okabe and K. Ito, "Color
// universal design", 2008), without the yellow that is too light for lines.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x40, 0x40, 0x40, 0xff}, {0x99, 0x66, 0x33, 0xff},
}

// Sizes of a picture.
const (
	width  = 900
	height = 460
)

// SVG draws a chart. The same chart gives the same bytes.
func SVG(w io.Writer, c *Chart) error {
	p := plot.New()
	p.Title.Text = c.Title
	p.X.Label.Text, p.Y.Label.Text = c.X.Name, c.Y.Name
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = font.Length(9)
	p.Add(plotter.NewGrid())
	logScale(&p.X, c.X.Log)
	logScale(&p.Y, c.Y.Log)
	var err error
	if c.Form == Bars {
		err = drawBars(p, c)
	} else {
		err = drawLines(p, c)
	}
	if err != nil {
		return fmt.Errorf("chart %s: %w", c.ID, err)
	}
	canvas := vgsvg.New(vg.Points(width), vg.Points(height))
	p.Draw(draw.New(canvas))
	_, err = canvas.WriteTo(w)
	return err
}

// logScale makes an axis logarithmic.
func logScale(a *plot.Axis, log bool) {
	if log {
		a.Scale, a.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
}

// drawBars draws a bar per category, of stacked parts or side by side.
func drawBars(p *plot.Plot, c *Chart) error {
	n := max(1, len(c.Categories))
	room := vg.Points(width * 0.7 / float64(n))
	each := room
	if !c.Stacked {
		each = room / vg.Length(max(1, len(c.Series)))
	}
	var below *plotter.BarChart
	for i, s := range c.Series {
		bars, err := plotter.NewBarChart(plotter.Values(s.Values), each)
		if err != nil {
			return err
		}
		bars.LineStyle.Width = 0
		bars.Color = palette[i%len(palette)]
		switch {
		case !c.Stacked:
			bars.Offset = each*vg.Length(i) - room/2 + each/2
		case below != nil:
			bars.StackOn(below)
		}
		below = bars
		p.Add(bars)
		p.Legend.Add(s.Name, bars)
	}
	p.NominalX(c.Categories...)
	if n > 4 {
		p.X.Tick.Label.Rotation = math.Pi / 6
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	}
	return nil
}

// drawLines draws points, their intervals, and what joins them.
func drawLines(p *plot.Plot, c *Chart) error {
	for i, s := range c.Series {
		points := intervals{}
		for _, at := range s.Points {
			if c.X.Log && at.X <= 0 || c.Y.Log && at.Y <= 0 {
				continue // a logarithm has no place for it
			}
			points = append(points, at)
		}
		if len(points) == 0 {
			continue
		}
		colour := palette[i%len(palette)]
		if s.Line {
			line, err := plotter.NewLine(points)
			if err != nil {
				return err
			}
			line.Color = colour
			if s.Dashed {
				line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
			}
			p.Add(line)
			p.Legend.Add(s.Name, line)
			continue
		}
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: colour, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
		bars, err := plotter.NewYErrorBars(points)
		if err != nil {
			return err
		}
		bars.Color = colour
		p.Add(dots, bars)
		p.Legend.Add(s.Name, dots)
	}
	return nil
}

// intervals are points as the plotter wants them.
type intervals []Point

// Len returns the number of points.
func (v intervals) Len() int { return len(v) }

// XY returns a point.
func (v intervals) XY(i int) (x, y float64) { return v[i].X, v[i].Y }

// YError returns how far the interval of a point reaches below and above it.
func (v intervals) YError(i int) (below, above float64) {
	if v[i].Low >= v[i].High {
		return 0, 0
	}
	return v[i].Y - v[i].Low, v[i].High - v[i].Y
}
