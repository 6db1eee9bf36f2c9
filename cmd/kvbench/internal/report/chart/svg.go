package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

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

// grey is of what belongs to no series.
var grey = color.RGBA{0x80, 0x80, 0x80, 0xff}

// Sizes of a picture, in points.
const (
	width  = 690 // without the legend
	height = 420
	perBar = 22 // height of a category
)

// SVG draws a chart. The same chart gives the same bytes.
func SVG(w io.Writer, c *Chart) error {
	if c.Form == Ratios {
		return svgRatios(w, c)
	}
	p := plot.New()
	p.Title.Text = c.Title
	p.Title.Padding = vg.Points(8)
	p.X.Label.Text, p.Y.Label.Text = c.X.title(), c.Y.title()
	p.Add(plotter.NewGrid())
	tall := float64(height)
	var err error
	switch c.Form {
	case Bars:
		p.X.Label.Text, p.Y.Label.Text = c.Y.title(), "" // bars lie down, since names are long
		each := 1.0
		if !c.Stacked {
			each = max(1, float64(len(c.Series))/2)
		}
		tall = max(160, 100+perBar*each*float64(len(c.Categories)))
		if c.Y.Log {
			logScale(&p.X, &c.Y)
			err = drawDots(p, c)
			fitLogScale(&p.X, &c.Y)
		} else {
			err = drawBars(p, c, vg.Points(perBar*each))
		}
	case Times:
		err = drawTimes(p, c)
	default:
		logScale(&p.X, &c.X)
		logScale(&p.Y, &c.Y)
		err = drawLines(p, c)
	}
	if err != nil {
		return fmt.Errorf("chart %s: %w", c.ID, err)
	}
	if c.Form != Bars {
		fitLogScale(&p.X, &c.X)
		fitLogScale(&p.Y, &c.Y)
	}
	legend := p.Legend
	p.Legend = plot.NewLegend()
	legend.Padding = vg.Points(4)
	legend.TextStyle.Font.Size, legend.Top, legend.Left = font.Length(9), true, true
	beside := legendWidth(&legend, c)
	canvas := vgsvg.New(vg.Points(width)+beside, vg.Points(tall))
	all := draw.New(canvas)
	p.Draw(draw.Crop(all, vg.Points(6), -beside-vg.Points(10), vg.Points(6), -vg.Points(6)))
	legend.Draw(draw.Crop(all, vg.Points(width), 0, 0, -vg.Points(34)))
	_, err = canvas.WriteTo(w)
	return err
}

// legendWidth returns how wide the legend is, with room for viewers that lack the font.
func legendWidth(l *plot.Legend, c *Chart) vg.Length {
	widest := vg.Length(0)
	for _, s := range c.Series {
		widest = max(widest, l.TextStyle.Width(s.Name))
	}
	return l.ThumbnailWidth + 1.15*widest + vg.Points(16)
}

// title returns what stands beside an axis.
func (a *Axis) title() string {
	if a.Unit == "" || a.Unit == Percentile || a.Log && a.Unit == Nanoseconds { // or the ticks have it
		return a.Name
	}
	return a.Name + ", " + string(a.Unit)
}

// logScale makes an axis logarithmic if it is to be.
func logScale(a *plot.Axis, about *Axis) {
	if about.Log {
		a.Scale, a.Tick.Marker = plot.LogScale{}, logTicks{about.Unit}
	}
}

// fitLogScale gives a logarithmic axis a range, which has to be positive. Of a single
// value the plotter would make a range that reaches 1 below it, and of none one around
// zero.
func fitLogScale(a *plot.Axis, about *Axis) {
	switch {
	case !about.Log:
	case !(a.Min <= a.Max):
		a.Min, a.Max = 1, 10
	case a.Min == a.Max:
		a.Min, a.Max = a.Min/2, a.Max*2
	}
}

// logTicks are at the digits of each power of ten, with numbers at the powers, and at 2
// and 5 too where there are few powers.
type logTicks struct{ unit Unit }

// Ticks returns the ticks between two values, and none unless both are positive
// numbers.
func (l logTicks) Ticks(low, high float64) []plot.Tick {
	const few = 100
	var ticks []plot.Tick
	if !(low > 0 && low <= high && high <= math.MaxFloat64) {
		return nil
	}
	for power := int(math.Floor(math.Log10(low))); math.Pow10(power) <= high; power++ {
		for digit := 1.0; digit < 10; digit++ {
			t := plot.Tick{Value: digit * math.Pow10(power)}
			if digit == 1 || high < few*low && (digit == 2 || digit == 5) {
				t.Label = l.unit.text(t.Value)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// text shows a number of a unit.
func (u Unit) text(x float64) string {
	switch u {
	case Percentile:
		return strconv.FormatFloat(100-100/x, 'g', 8, 64) + " %"
	case Nanoseconds:
		return time.Duration(x).String()
	}
	return shortNumber(x)
}

// shortNumber shows a number in few characters.
func shortNumber(x float64) string {
	for _, big := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if x >= big.size {
			return strconv.FormatFloat(x/big.size, 'g', 3, 64) + " " + big.name
		}
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// drawLines draws points, their intervals, and what joins them. What belongs to no series lies below the others.
func drawLines(p *plot.Plot, c *Chart) error {
	order := make([]int, len(c.Series))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return c.Series[i].above() - c.Series[j].above() })
	for _, i := range order {
		s := &c.Series[i]
		points := c.drawable(s.Points)
		if len(points) == 0 {
			continue
		}
		colour, radius := palette[c.hue(i)%len(palette)], vg.Points(3)
		switch s.above() {
		case 0:
			colour = grey
		case 2:
			radius = vg.Points(5)
		}
		if s.Line {
			line, err := plotter.NewLine(points)
			if err != nil {
				return err
			}
			line.Color = colour
			if again := i / len(palette); s.Dashed || again > 0 {
				line.Dashes = []vg.Length{vg.Points(4 / float64(max(1, again))), vg.Points(3)}
			}
			p.Add(line)
			p.Legend.Add(s.Name, line)
			continue
		}
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: colour, Radius: radius, Shape: draw.CircleGlyph{}}
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

// above returns the layer of a series: points that belong to none are the lowest, a single point is the highest.
func (s *Series) above() int {
	switch {
	case s.Neutral:
		return 0
	case len(s.Points) == 1:
		return 2
	}
	return 1
}

// drawable returns the points that the axes have a place for. On a logarithmic axis an
// interval that reaches down to zero ends at the lowest point of the chart.
func (c *Chart) drawable(points []Point) intervals {
	var shown intervals
	for _, at := range points {
		if c.X.Log && at.X <= 0 || c.Y.Log && at.Y <= 0 {
			continue
		}
		if c.Y.Log && at.Low <= 0 && at.Low < at.High {
			at.Low = c.lowest()
		}
		shown = append(shown, at)
	}
	return shown
}

// lowest returns the least positive Y of a chart that has one.
func (c *Chart) lowest() float64 {
	least := math.Inf(1)
	for _, s := range c.Series {
		for _, at := range s.Points {
			if at.Y > 0 {
				least = min(least, at.Y)
			}
		}
	}
	return least
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
