package chart

import (
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours of ratios, which the colour-blind tell apart, and where they are full.
var (
	lessColour = palette[0]
	moreColour = palette[4]
)

const fullRatio = 8

// Sizes of the table, in points.
const (
	ratioRow    = 20
	ratioHead   = 64
	ratioLabel  = 230
	ratioColumn = (width - ratioLabel - 10) / 10
)

// svgRatios draws a chart of ratios as a table.
func svgRatios(w io.Writer, c *Chart) error {
	tall := vg.Points(ratioHead + ratioRow*float64(len(c.Categories)) + 10)
	canvas := vgsvg.New(vg.Points(width), tall)
	all := draw.New(canvas)
	style := plot.New().Legend.TextStyle
	style.Font.Size = font.Length(9)
	style.YAlign = text.YCenter
	title := style
	title.Font.Size = font.Length(12)
	at := func(x, y float64) vg.Point { return vg.Point{X: vg.Points(x), Y: tall - vg.Points(y)} }
	all.FillText(title, at(6, 14), c.Title+": times as much as "+c.Categories[c.Baseline])
	style.XAlign = text.XCenter
	for i, s := range c.Series {
		all.FillText(style, at(ratioLabel+ratioColumn*(float64(i)+0.5), ratioHead-12), s.Name)
	}
	for n, name := range c.Categories {
		y := ratioHead + ratioRow*float64(n)
		style.XAlign = text.XLeft
		all.FillText(style, at(6, y+ratioRow/2), name)
		style.XAlign = text.XCenter
		for i := range c.Series {
			ratio, known := c.RatioOf(i, n)
			x := ratioLabel + ratioColumn*float64(i)
			if known {
				all.FillPolygon(ratioColour(ratio),
					[]vg.Point{at(x, y), at(x+ratioColumn-1, y), at(x+ratioColumn-1, y+ratioRow-1),
						at(x, y+ratioRow-1)})
			}
			all.FillText(style, at(x+ratioColumn/2, y+ratioRow/2), ratioText(ratio, known))
		}
	}
	_, err := canvas.WriteTo(w)
	return err
}

// ratioText shows a ratio with two digits or more.
func ratioText(ratio float64, known bool) string {
	switch {
	case !known:
		return "-"
	case math.IsInf(ratio, 1):
		return "from 0"
	case ratio >= 10:
		return strconv.FormatFloat(ratio, 'f', 0, 64)
	case ratio >= 1:
		return strconv.FormatFloat(ratio, 'f', 2, 64)
	}
	return strconv.FormatFloat(ratio, 'g', 2, 64)
}

// ratioColour is white at 1.
func ratioColour(ratio float64) color.NRGBA {
	const most = 0xa0 // text can be read on it
	strength := math.Min(1, math.Abs(math.Log2(ratio))/math.Log2(fullRatio))
	if ratio < 1 {
		return withAlpha(lessColour, uint8(most*strength))
	}
	return withAlpha(moreColour, uint8(most*strength))
}
