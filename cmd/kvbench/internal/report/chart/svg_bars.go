package chart

import (
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawBars draws a bar per category, of stacked parts or side by side; the first
// category is on top, as it is in tables.
func drawBars(p *plot.Plot, c *Chart, room vg.Length) error {
	const filled = 0.75 // of the room
	each := filled * room
	if !c.Stacked {
		each /= vg.Length(max(1, len(c.Series)))
	}
	var below *plotter.BarChart
	for i, s := range c.Series {
		values := slices.Clone(s.Values)
		slices.Reverse(values)
		bars, err := plotter.NewBarChart(plotter.Values(values), each)
		if err != nil {
			return err
		}
		bars.Horizontal = true
		bars.LineStyle.Width = 0
		bars.Color = palette[i%len(palette)]
		switch {
		case !c.Stacked:
			bars.Offset = filled*room/2 - each*(vg.Length(i)+0.5)
		case below != nil:
			bars.StackOn(below)
		}
		below = bars
		p.Add(bars)
		p.Legend.Add(s.Name, bars)
	}
	nameCategories(p, c)
	return nil
}

// drawDots draws a dot per category and series, and none of what has no place on a logarithmic axis.
func drawDots(p *plot.Plot, c *Chart) error {
	for i, s := range c.Series {
		var points plotter.XYs
		for n, x := range s.Values {
			if x > 0 {
				points = append(points, plotter.XY{X: x, Y: float64(len(c.Categories) - 1 - n)})
			}
		}
		if len(points) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		colour := palette[i%len(palette)]
		dots.GlyphStyle = draw.GlyphStyle{Color: colour, Radius: vg.Points(4), Shape: draw.CircleGlyph{}}
		p.Add(dots)
		p.Legend.Add(s.Name, dots)
	}
	nameCategories(p, c)
	return nil
}

// nameCategories has the vertical axis name the categories, the first on top.
func nameCategories(p *plot.Plot, c *Chart) {
	names := slices.Clone(c.Categories)
	slices.Reverse(names)
	for i, name := range names {
		// Room for viewers that lack the font, whose substitute may be wider.
		names[i] = name + strings.Repeat(" ", 1+len(name)/4)
	}
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.6, float64(len(names))-0.4
}
