package chart

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/advice"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/internal/advise"
)

// mib is a unit of the charts.
const mib = 1 << 20

// Advice returns the charts of advice: cost by memory, with the settings that none beats, and device
// reads by cache.
func Advice(r *advice.Result) []Chart {
	a := r.Advice
	spot := func(name string, p *advise.Prediction, y float64) Series {
		return Series{Name: name, Points: []Point{{X: float64(p.Memory) / mib, Y: y, Label: p.Name()}}}
	}
	front := Chart{ID: "advice-front", Title: "Predicted cost of an operation by memory",
		Note: "The line joins the settings that no other one beats with as much memory of filters and cache.",
		Form: Lines, X: Axis{Name: "filters and cache, MiB", Log: true},
		Y: Axis{Name: "per operation", Unit: Nanoseconds, Log: true}}
	line := Series{Name: "none is better", Line: true}
	for i := range a.Front {
		p := &a.Front[i]
		line.Points = append(line.Points, Point{X: float64(p.Memory) / mib, Y: p.Score(), Label: p.Name()})
	}
	others := Series{Name: "other settings", Neutral: true}
	for i := range a.All {
		p := &a.All[i]
		others.Points = append(others.Points, Point{X: float64(p.Memory) / mib, Y: p.Score(), Label: p.Name()})
	}
	best := &a.Recommendation.Setting
	front.Series = []Series{line, spot("now", &a.Now, a.Now.Score()), spot("recommended", best, best.Score()), others}
	curve := Chart{ID: "advice-cache", Title: "Predicted device reads of a lookup by cache",
		Note: "With the filters that are there: the miss-ratio curve of the store's blocks.",
		Form: Lines, X: Axis{Name: "cache, MiB", Log: true}, Y: Axis{Name: "device reads per lookup", Log: true}}
	reads := Series{Name: "predicted", Line: true}
	for i := range a.Curve {
		p := &a.Curve[i]
		reads.Points = append(reads.Points, Point{X: float64(p.Cache) / mib, Y: p.All.Reads, Label: p.Name()})
	}
	now := Series{Name: "now", Points: []Point{{X: float64(a.Now.Cache) / mib, Y: a.Now.All.Reads}}}
	curve.Series = []Series{reads, now}
	return []Chart{front, curve}
}

const adviceHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Advice</title>
`

// adviceStyle fits the page to the screen and to the reader's scheme. Pictures are drawn for a light page: in the dark
// their lightness is inverted, and hues stay.
const adviceStyle = `
figure svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  :root { --back: #0f1318; --fore: #e6edf3; --soft: #9aa4af; --line: #30363d; --panel: #171c23; color-scheme: dark; }
  figure svg { filter: invert(.93) hue-rotate(180deg); }
}
`

// adviceRows is how many settings the page shows.
const adviceRows = 60

// WriteAdvice writes a page with the charts and tables of advice. It has no program in it.
func WriteAdvice(w io.Writer, r *advice.Result) error {
	var b strings.Builder
	b.WriteString(adviceHead + "<style>\n" + style + adviceStyle + "</style>\n</head>\n<body>\n")
	re := &r.Advice.Recommendation
	fmt.Fprintf(&b, "<header><h1>Advice for %s</h1></header>\n<main>\n<section><h2>Recommendation</h2>\n<p>%s</p>\n",
		html.EscapeString(r.Store), html.EscapeString(re.Words))
	if re.Options != "" {
		fmt.Fprintf(&b, "<pre>%s</pre>\n", html.EscapeString(re.Options))
	}
	fmt.Fprintf(&b, "<p>Confidence: %s. %s.</p>\n</section>\n", re.Confidence, html.EscapeString(re.Why))
	for _, c := range Advice(r) {
		fmt.Fprintf(&b, "<section><h2>%s</h2>\n<figure>", html.EscapeString(c.Title))
		var svg strings.Builder
		c.Title = "" // the heading has it
		if err := SVG(&svg, &c); err != nil {
			return err
		}
		_, picture, _ := strings.Cut(svg.String(), "<svg")
		fmt.Fprintf(&b, "<svg%s<figcaption>%s</figcaption></figure>\n</section>\n", picture, html.EscapeString(c.Note))
	}
	for _, g := range report.AdviceGrids(r, adviceRows) {
		writeTable(&b, g)
	}
	if v := r.Verdict; v != nil {
		writeItems(&b, "Verified", report.VerdictLines(v))
	}
	writeItems(&b, "What cannot be known from here", r.Advice.Unknown)
	b.WriteString("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeTable(b *strings.Builder, g *report.Grid) {
	fmt.Fprintf(b, "<section><h2>%s</h2>\n<div class=\"scroll\"><table><thead><tr>", html.EscapeString(g.Title))
	for _, c := range g.Columns {
		fmt.Fprintf(b, "<th>%s</th>", html.EscapeString(c.Name))
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range g.Rows {
		b.WriteString("<tr>")
		for _, item := range row {
			fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(item.Text))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table></div>\n</section>\n")
}

func writeItems(b *strings.Builder, title string, items []string) {
	fmt.Fprintf(b, "<section><h2>%s</h2>\n<ul>\n", title)
	for _, item := range items {
		fmt.Fprintf(b, "<li>%s</li>\n", html.EscapeString(item))
	}
	b.WriteString("</ul>\n</section>\n")
}
