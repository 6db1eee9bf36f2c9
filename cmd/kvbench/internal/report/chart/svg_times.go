package chart

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Bounds of what is drawn of Times.
const (
	timesShown = 4    // series; the colours of more run into each other
	laneShare  = 0.09 // height of a lane, of that of the plane
	laneFilled = 0.8
)

// drawTimes draws the first series as lines over lanes of marks: the lanes lie below
// zero, where the axis has their names instead of numbers.
func drawTimes(p *plot.Plot, c *Chart) error {
	shown := c.Series[:min(timesShown, len(c.Series))]
	if n := len(c.Series); n > len(shown) {
		p.Title.Text = fmt.Sprintf("%s (the first %d of %d)", c.Title, len(shown), n)
	}
	most := 0.0
	for i, s := range shown {
		for _, at := range s.Points {
			most = max(most, at.Y)
		}
		line, err := plotter.NewLine(intervals(s.Points))
		if err != nil {
			return err
		}
		line.Color, line.StepStyle, line.Width = palette[i], plotter.MidStep, vg.Points(1.2)
		p.Add(line)
		p.Legend.Add(s.Name, line)
	}
	height := laneShare * most
	for i, s := range shown {
		for _, m := range s.Marks {
			if err := drawMark(p, m, i, len(shown), height); err != nil {
				return err
			}
		}
	}
	p.Y.Min, p.Y.Max = -height*float64(len(Lanes)), 1.05*most
	p.X.Min = 0
	p.Y.Tick.Marker = laneTicks{height}
	return nil
}

// drawMark draws a mark of the i-th of n series in its lane.
func drawMark(p *plot.Plot, m Mark, i, n int, height float64) error {
	lane := slices.Index(Lanes, m.Lane)
	each := laneFilled * height / float64(n)
	top := -height*(float64(lane)+(1-laneFilled)/2) - each*float64(i)
	box, err := plotter.NewPolygon(plotter.XYs{{X: m.From, Y: top}, {X: m.To, Y: top}, {X: m.To, Y: top - each},
		{X: m.From, Y: top - each}})
	if err != nil {
		return err
	}
	box.Color, box.LineStyle.Color, box.Width = withAlpha(palette[i], 0x90), palette[i], vg.Points(0.4)
	p.Add(box)
	return nil
}

// withAlpha makes a colour transparent.
func withAlpha(c color.RGBA, alpha uint8) color.NRGBA {
	return color.NRGBA{R: c.R, G: c.G, B: c.B, A: alpha}
}

// laneTicks are numbers from zero up and names of lanes below.
type laneTicks struct{ height float64 }

// Ticks returns the ticks between two values.
func (t laneTicks) Ticks(_, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(0, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = shortNumber(ticks[i].Value)
		}
	}
	for i, name := range Lanes {
		ticks = append(ticks, plot.Tick{Value: -t.height * (float64(i) + 0.5), Label: name})
	}
	return ticks
}
