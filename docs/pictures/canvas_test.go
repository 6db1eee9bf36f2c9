package pictures

import (
	"bytes"
	"fmt"
	"strings"
)

// A picture is width wide, so that its text can be read on a telephone too, and a page shows it at shownWidth.
const width, shownWidth = 480, 640

// A canvas is a picture. Coordinates are pixels, from the top left.
type canvas struct {
	title, description string // for those who do not see it
	height             int
	style              string // classes of its own, in addition to those of all pictures

	body  bytes.Buffer
	boxes []area
	texts []label
}

// An area is a rectangle.
type area struct{ x, y, w, h int }

// A label is text and what it takes at most.
type label struct {
	area
	text string
	in   *area // the box that it must fit in; nil: the picture
}

// style has the colours of a light page and of a dark one. The picture has a ground of its own, so a page whose colours
// are not the system's shows it as well. Boxes: mem is in memory, disk in files or objects, hot is what the picture is
// about, stop what ends there, gone what is not there any more.
const style = `text{font:13px Helvetica,Arial,"Liberation Sans",sans-serif;fill:#1f2328}
.b{font-weight:bold}.s{font-size:12px;fill:#59636e}.c{font:12px Menlo,Consolas,"Liberation Mono",monospace}
.ground{fill:#fff;stroke:#d1d9e0}.plain{fill:#f6f8fa;stroke:#afb8c1}.mem{fill:#ddf4ff;stroke:#0969da}
.disk{fill:#dafbe1;stroke:#1a7f37}.hot{fill:#fff1d6;stroke:#bc4c00}.stop{fill:#ffebe9;stroke:#cf222e}
.gone{fill:none;stroke:#818b98;stroke-dasharray:4 3}
.line,.arrow,.names{fill:none;stroke:#59636e}.names{stroke-dasharray:4 3}.tip,.dot{fill:#59636e}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.s{fill:#9198a1}
.ground{fill:#0d1117;stroke:#3d444d}.plain{fill:#1c2128;stroke:#656c76}.mem{fill:#0c2a4d;stroke:#4493f8}
.disk{fill:#0f2d1a;stroke:#3fb950}.hot{fill:#3a2508;stroke:#db6d28}.stop{fill:#3c1618;stroke:#f85149}
.gone{stroke:#656c76}.line,.arrow,.names{stroke:#9198a1}.tip,.dot{fill:#9198a1}}`

// svg returns the picture as a file.
func (c *canvas) svg() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`role="img" aria-labelledby="title desc">
<title id="title">%s</title>
<desc id="desc">%s</desc>
<style>%s</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">`+
		`<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>
<rect class="ground" x=".5" y=".5" width="%d" height="%d" rx="6"/>
`, shownWidth, c.height*shownWidth/width, width, c.height, escape(c.title), escape(c.description), style+c.style,
		width-1, c.height-1)
	out.Write(c.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// lineHeight is the distance of two lines of text.
const lineHeight = 17

// box draws a rectangle of a style with lines of text in its middle.
func (c *canvas) box(style string, x, y, w, h int, lines ...string) {
	fmt.Fprintf(&c.body, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="4"/>`+"\n", style, x, y, w, h)
	in := &area{x, y, w, h}
	c.boxes = append(c.boxes, *in)
	top := y + (h-len(lines)*lineHeight)/2 + 13
	for i, line := range lines {
		c.write(x+w/2, top+i*lineHeight, "middle", line, in)
	}
}

// text writes lines that begin at x, the first with its foot at y.
func (c *canvas) text(x, y int, lines ...string) {
	for i, line := range lines {
		c.write(x, y+i*lineHeight, "start", line, nil)
	}
}

// middle is text around x.
func (c *canvas) middle(x, y int, lines ...string) {
	for i, line := range lines {
		c.write(x, y+i*lineHeight, "middle", line, nil)
	}
}

// write writes a line. It is bold if it begins with *, code with a backquote, and an aside with a tilde.
func (c *canvas) write(x, y int, anchor, line string, in *area) {
	classes := map[byte]string{'*': "b", '`': "c", '~': "s"}
	class := classes[line[0]]
	attributes := ""
	if class != "" {
		line, attributes = line[1:], ` class="`+class+`"`
	}
	if anchor != "start" {
		attributes += ` text-anchor="` + anchor + `"`
	}
	fmt.Fprintf(&c.body, `<text x="%d" y="%d"%s>%s</text>`+"\n", x, y, attributes, escape(line))
	w := textWidth(class, line)
	l := label{area: area{x, y - 11, w, 14}, text: line, in: in}
	switch anchor {
	case "middle":
		l.x -= w / 2
	case "end":
		l.x -= w
	}
	c.texts = append(c.texts, l)
}

// textWidth returns what a text takes: its width in Helvetica, and a tenth more for other fonts.
func textWidth(class, text string) int {
	sum := 0 // thousandths of the font's size
	for _, r := range text {
		switch {
		case class == "c":
			sum += 602
		case strings.ContainsRune("ijl'", r):
			sum += 222
		case strings.ContainsRune(" !,./:;It[]f", r):
			sum += 278
		case strings.ContainsRune("-()r", r):
			sum += 333
		case strings.ContainsRune("ckvsxyzJ", r):
			sum += 500
		case strings.ContainsRune("mwMW→−", r):
			sum += 840
		case r >= 'A' && r <= 'Z':
			sum += 700
		default:
			sum += 556
		}
	}
	size := 13
	if class == "s" || class == "c" {
		size = 12
	}
	return sum * size * 11 / 10_000
}

// line draws lines of a style from point to point: line, arrow, or names, which is an arrow with gaps.
func (c *canvas) line(style string, points ...int) {
	tip := ""
	if style != "line" {
		tip = ` marker-end="url(#tip)"`
	}
	fmt.Fprintf(&c.body, `<path class="%s" d="`, style)
	for i := 0; i < len(points); i += 2 {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&c.body, "%s%d %d", command, points[i], points[i+1])
	}
	fmt.Fprintf(&c.body, `"%s/>`+"\n", tip)
}

// shape fills what is within points.
func (c *canvas) shape(style string, points ...int) {
	fmt.Fprintf(&c.body, `<polygon class="%s" points="%s"/>`+"\n", style, strings.Trim(fmt.Sprint(points), "[]"))
}

// dot draws a spot.
func (c *canvas) dot(x, y int) {
	fmt.Fprintf(&c.body, `<circle class="dot" cx="%d" cy="%d" r="5"/>`+"\n", x, y)
}
