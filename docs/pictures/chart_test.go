package pictures

import (
	"fmt"
	"math"
	"strings"
)

// chartStyle has the colours of lines, which eyes that do not tell red from green tell apart too. They are dashed with
// the class few.
const chartStyle = `
.grid{fill:none;stroke:#d1d9e0}.curve{fill:none;stroke-width:2}.few{stroke-dasharray:6 4}
.spot{fill:currentColor;stroke:none}
.k1{stroke:#0072b2;color:#0072b2}.k2{stroke:#d55e00;color:#d55e00}.k3{stroke:#009e73;color:#009e73}
.k4{stroke:#b5588b;color:#b5588b}.k5{stroke:#8a6d00;color:#8a6d00}.k6{stroke:#59636e;color:#59636e}
@media (prefers-color-scheme:dark){.grid{stroke:#3d444d}
.k1{stroke:#56b4e9;color:#56b4e9}.k2{stroke:#ff8a4c;color:#ff8a4c}.k3{stroke:#3fc79a;color:#3fc79a}
.k4{stroke:#e396c4;color:#e396c4}.k5{stroke:#e6c229;color:#e6c229}.k6{stroke:#9198a1;color:#9198a1}}`

// A chart has lines over two axes.
type chart struct {
	title, description string
	across, up         axis
	lines              []curve
	keys               []curve // what the legend has; nil: the lines
}

// An axis goes from its first tick to its last one.
type axis struct {
	name  string // of what it measures
	log   bool
	ticks []tick
}

// A tick is a value that an axis names.
type tick struct {
	at   float64
	text string
}

// A curve is a line of a chart through points of two values each.
type curve struct {
	name, style string
	points      points
}

// points have a value of each axis, across first.
type points [][2]float64

// of returns where a value is: 0 at the first tick, 1 at the last.
func (a axis) of(value float64) float64 {
	from, to := a.ticks[0].at, a.ticks[len(a.ticks)-1].at
	if a.log {
		value, from, to = math.Log(value), math.Log(from), math.Log(to)
	}
	return (value - from) / (to - from)
}

// draw returns the chart as a picture.
func (ch *chart) draw() *canvas {
	const left, right, top, plot, row = 62, width - 26, 62, 250, 20
	c := &canvas{style: chartStyle, title: ch.title, description: ch.description}
	c.text(16, 26, "*"+ch.title)
	c.text(16, 46, "~"+ch.up.name)
	x := func(v float64) float64 { return left + ch.across.of(v)*(right-left) }
	y := func(v float64) float64 { return top + plot - ch.up.of(v)*plot }
	for _, t := range ch.up.ticks {
		fmt.Fprintf(&c.body, `<path class="grid" d="M%d %.1fL%d %[2]f"/>`+"\n", left, y(t.at), right)
		c.write(left-8, int(y(t.at))+4, "end", "~"+t.text, nil)
	}
	for _, t := range ch.across.ticks {
		fmt.Fprintf(&c.body, `<path class="grid" d="M%.1f %dL%[1]f %d"/>`+"\n", x(t.at), top+plot, top+plot+5)
		c.middle(int(x(t.at)), top+plot+20, "~"+t.text)
	}
	c.middle((left+right)/2, top+plot+40, "~"+ch.across.name)
	for _, l := range ch.lines {
		var path, spots strings.Builder
		for i, p := range l.points {
			fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], x(p[0]), y(p[1]))
			if !strings.Contains(l.style, "bare") {
				fmt.Fprintf(&spots, `<circle class="spot %s" cx="%.1f" cy="%.1f" r="3"/>`+"\n", l.style,
					x(p[0]), y(p[1]))
			}
		}
		fmt.Fprintf(&c.body, `<path class="curve %s" d="%s"/>`+"\n%s", l.style, path.String(), spots.String())
	}
	keys := ch.keys
	if keys == nil {
		keys = ch.lines
	}
	at, foot := 16, top+plot+66
	for _, k := range keys {
		needed := 30 + textWidth("", k.name)
		if at+needed > width-12 {
			at, foot = 16, foot+row
		}
		fmt.Fprintf(&c.body, `<path class="curve %s" d="M%d %dh24"/>`+"\n", k.style, at, foot-4)
		c.text(at+30, foot, k.name)
		at += needed + 14
	}
	c.height = foot + 14
	return c
}
