package chart

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/internal/scale"
)

// measured runs a few small cells, more than there are colours.
func measured(t *testing.T) []*cell.Result {
	t.Helper()
	lab, err := cell.NewLab(t.TempDir(), []string{"kvbench", "sweep"}, progress.New(io.Discard, "none"))
	require.NoError(t, err)
	defer func() { require.NoError(t, lab.Close()) }()
	var set []*cell.Result
	for _, of := range []struct{ engine, filter, shape string }{
		{"null", "none", cell.Settled},
		{"siftkv", "none", cell.Settled},
		{"siftkv", "bloom:8", cell.Young + ":2"},
		{"siftkv", "blocked:12", cell.Grown},
		{"pebble", "own:10", cell.Settled},
	} {
		for _, cache := range []int64{64 << 10, 1 << 20} {
			s := cell.Default()
			s.Engine, s.Filter, s.Shape, s.Cache = of.engine, of.filter, of.shape, cache
			s.Keys, s.Lookups, s.Reps, s.Memtable = "2000", 400, 4, 1<<20
			r, err := lab.Run(t.Context(), s)
			require.NoError(t, err)
			set = append(set, r)
		}
	}
	return set
}

// TestThePageInABrowser uses a page as a reader does. It needs Chromium; where
// SIFTKV_BROWSER is "required", there has to be one.
func TestThePageInABrowser(t *testing.T) {
	path := chromium()
	if path == "" {
		require.NotEqual(t, "required", os.Getenv("SIFTKV_BROWSER"), "there is no Chromium: apt-get install chromium")
		t.Skip("there is no Chromium: apt-get install chromium")
	}
	set := measured(t)
	file := filepath.Join(t.TempDir(), "report.html")
	var out bytes.Buffer
	data, err := NewData("a page", &results.Set{Cells: set})
	require.NoError(t, err)
	require.NoError(t, WritePage(&out, data, set))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	b := openTab(t, path, file)
	for _, part := range []struct {
		name string
		test func(t *testing.T, b *tab, d *Data, set []*cell.Result)
	}{
		{"charts", seeCharts}, {"legend", clickLegend}, {"zoom", zoom}, {"ratios", chooseBaseline},
		{"tables", sortTables}, {"theme", switchTheme}, {"downloads", download}, {"compare", dropFiles},
		{"phone", seeOnPhone}, {"print", printPage}, {"alarm", raiseAlarm},
	} {
		t.Run(part.name, func(t *testing.T) {
			b.t = t
			part.test(t, b, data, set)
			b.quiet()
		})
	}
}

// plotOf is the program text for the drawn chart of an ID.
func plotOf(id string) string {
	return `echarts.getInstanceByDom(document.getElementById("plot-` + id + `"))`
}

// seeCharts finds every series in every chart, and ink on it.
func seeCharts(t *testing.T, b *tab, d *Data, _ []*cell.Result) {
	require.Len(t, d.Charts, 10)
	for _, c := range d.Charts {
		node := `document.getElementById("plot-` + c.ID + `")`
		b.find(node)
		shot, err := png.Decode(bytes.NewReader(get(b, chromedp.Screenshot(chromedp.ID("plot-"+c.ID)))))
		require.NoError(t, err)
		require.Greater(t, ink(shot), 0.01, c.ID)
		if c.Form == Ratios {
			require.Equal(t, len(c.Categories), eval[int](b, node+`.querySelectorAll("tbody tr").length`))
			require.Equal(t, len(c.Series)+1, eval[int](b, node+`.querySelectorAll("th").length`))
			continue
		}
		points := eval[map[string]int](b, `(() => {
			const counts = {};
			for (const s of `+plotOf(c.ID)+`.getModel().getSeries())
				counts[s.name] = Math.max(counts[s.name] || 0, s.getData().count());
			return counts;
		})()`)
		require.Len(t, points, len(c.Series), c.ID)
		for _, s := range c.Series {
			values := s.Values
			if c.Y.Log {
				values = slices.DeleteFunc(slices.Clone(values), func(x float64) bool { return x <= 0 })
			}
			require.Equal(t, max(len(s.Points), len(values)), points[s.Name], "%s: %s", c.ID, s.Name)
		}
		seen := eval[int](b, shown(c.ID))
		require.Equal(t, min(len(c.Series), 8), seen, c.ID) // as many as there are colours
	}
}

// shown is the program text for the number of series that are not hidden.
func shown(id string) string {
	return `new Set(` + plotOf(id) + `.getModel().getSeries().filter((s) => !` + plotOf(id) +
		`.getModel().isSeriesFiltered(s)).map((s) => s.name)).size`
}

// ink returns the share of a picture that has not the colour of its corner.
func ink(shot image.Image) float64 {
	bounds, n := shot.Bounds(), 0
	paper := shot.At(bounds.Min.X+2, bounds.Max.Y-2)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			if shot.At(x, y) != paper {
				n++
			}
		}
	}
	return float64(n) / float64(bounds.Dx()*bounds.Dy())
}

// clickLegend hides a series, sees it gone, and shows it again.
func clickLegend(t *testing.T, b *tab, d *Data, _ []*cell.Result) {
	c := chartOf(t, d, "times")
	name := c.Series[0].Name
	bars := `[...document.querySelectorAll("#plot-times path")]` +
		`.filter((p) => p.getAttribute("fill") === "#0072b2").length`
	label := `[...document.querySelectorAll("#plot-times text")].find((text) => text.textContent === "` + name + `")`
	require.Equal(t, len(c.Categories)+1, eval[int](b, bars), "a bar for each cell, and the sign in the legend")
	b.click(label)
	b.wait(bars + ` === 0`)
	require.False(t, eval[bool](b, plotOf("times")+`.getOption().legend[0].selected["`+name+`"]`))
	b.click(label)
	// a name under the mouse makes its bars brighter, until the mouse moves on within the chart
	at := b.find(`document.getElementById("plot-times")`)
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X+at.Width-2, at.Y+at.Height-2))
	b.wait(fmt.Sprintf("%s === %d", bars, len(c.Categories)+1))

	// Of many series the first are shown, and a click shows them all.
	c = chartOf(t, d, "latency-existing")
	require.Greater(t, len(c.Series), 8)
	require.Equal(t, 8, eval[int](b, shown("latency-existing")))
	b.click(`[...document.querySelectorAll("#plot-latency-existing text")].find((text) => text.textContent === "all")`)
	b.wait(fmt.Sprintf("%s === %d", shown("latency-existing"), len(c.Series)))
}

// zoom drags a rectangle in a plane, and restores it.
func zoom(t *testing.T, b *tab, _ *Data, _ []*cell.Result) {
	extent := plotOf("fpr") + `.getModel().getComponent("xAxis").axis.scale.getExtent()`
	whole := eval[[]float64](b, extent)
	at := b.find(`document.querySelector("#plot-fpr")`)
	b.drag(at.X+0.4*at.Width, at.Y+0.3*at.Height, at.X+0.6*at.Width, at.Y+0.7*at.Height)
	b.wait(fmt.Sprintf("%s[0] > %g", extent, whole[0]))
	zoomed := eval[[]float64](b, extent)
	require.Less(t, zoomed[1]-zoomed[0], (whole[1]-whole[0])/2)
	eval[any](b, plotOf("fpr")+`.dispatchAction({ type: "restore" })`)
	b.wait(fmt.Sprintf("%s[0] === %g", extent, whole[0]))
}

// chooseBaseline takes another baseline for the ratios.
func chooseBaseline(t *testing.T, b *tab, d *Data, _ []*cell.Result) {
	c := chartOf(t, d, "ratios")
	row := func(n int) []string {
		return eval[[]string](b, fmt.Sprintf(
			`[...document.querySelectorAll("#plot-ratios tbody tr")[%d].cells].map((c) => c.textContent)`, n))
	}
	for _, baseline := range []int{c.Baseline, 5} {
		b.do(chromedp.SetValue(chromedp.ID("baseline"), strconv.Itoa(baseline)))
		eval[any](b, `document.getElementById("baseline").dispatchEvent(new Event("change"))`)
		for i, text := range row(baseline)[1:] {
			if c.Series[i].Values[baseline] >= 0 {
				require.Equal(t, "1.00", text, c.Series[i].Name)
			}
		}
	}
	require.Equal(t, "-", row(0)[1], "null reads no blocks")
	require.NotEqual(t, "1.00", row(c.Baseline)[1])
}

// sortTables sorts by a column of numbers and by one of words, up and down.
func sortTables(t *testing.T, b *tab, d *Data, _ []*cell.Result) {
	for n, grid := range d.Grids {
		column := func(i int) []string {
			return eval[[]string](b, fmt.Sprintf(
				`[...document.querySelectorAll("#grids table")[%d].tBodies[0].rows]`+
					`.map((r) => r.cells[%d].textContent)`, n, i))
		}
		for i, c := range grid.Columns {
			if (i+n)%scale.Stride(3, 1) != 0 { // other columns of each table
				continue
			}
			head := fmt.Sprintf(`document.querySelectorAll("#grids table")[%d].tHead.rows[0].cells[%d]`, n, i)
			for _, way := range []string{"ascending", "descending"} {
				b.click(head + `.firstChild`)
				require.Equal(t, way, eval[string](b, head+`.getAttribute("aria-sort")`))
				require.Equal(t, sorted(grid, i, way == "descending"), column(i), "%s by %s, %s", grid.Title, c.Name,
					way)
			}
		}
	}
}

// sorted returns the texts of a column as they are to stand.
func sorted(g *report.Grid, column int, down bool) []string {
	rows := slices.Clone(g.Rows)
	slices.SortStableFunc(rows, func(a, b []report.Item) int {
		x, y, way := a[column], b[column], 1
		if down {
			way = -1
		}
		switch {
		case x.Sort != nil && y.Sort != nil:
			return way * cmp.Compare(*x.Sort, *y.Sort)
		case g.Columns[column].Text:
			return way * naturally(x.Text, y.Text)
		case x.Sort != nil:
			return -1
		case y.Sort != nil:
			return 1
		}
		return 0
	})
	var texts []string
	for _, r := range rows {
		texts = append(texts, r[column].Text)
	}
	return texts
}

// naturally compares words as the browser does, in which numbers count as such.
func naturally(a, b string) int {
	runs := regexp.MustCompile(`[0-9]+|[^0-9]+`)
	return slices.CompareFunc(runs.FindAllString(a, -1), runs.FindAllString(b, -1), func(x, y string) int {
		n, errX := strconv.Atoi(x)
		m, errY := strconv.Atoi(y)
		if errX == nil && errY == nil {
			return cmp.Compare(n, m)
		}
		return cmp.Compare(x, y)
	})
}

// switchTheme goes to dark and back, by the button and by the system's wish.
func switchTheme(t *testing.T, b *tab, _ *Data, _ []*cell.Result) {
	back := `getComputedStyle(document.body).backgroundColor`
	light := eval[string](b, back)
	b.click(`document.getElementById("theme")`)
	require.Equal(t, "dark", eval[string](b, `document.documentElement.dataset.theme`))
	require.NotEqual(t, light, eval[string](b, back))
	require.Equal(t, "true", eval[string](b, `document.getElementById("theme").getAttribute("aria-pressed")`))
	b.click(`document.getElementById("theme")`)
	require.Equal(t, light, eval[string](b, back))
	for _, scheme := range []string{"dark", "light"} {
		command(b, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: scheme}}})
		b.wait(`document.documentElement.dataset.theme === "` + scheme + `"`)
	}
	require.Equal(t, light, eval[string](b, back))
}

// download saves what the page holds.
func download(t *testing.T, b *tab, d *Data, set []*cell.Result) {
	dir := t.TempDir()
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir, EventsEnabled: new(true),
	})
	require.NoError(t, err)
	save := func(button string) {
		progress := chromedp.BrowserEvents(b.ctx, browser.DownloadProgress)
		b.click(`document.getElementById("` + button + `")`)
		for e, err := range progress {
			require.NoError(t, err)
			require.NotEqual(t, browser.DownloadProgressStateCanceled, e.State)
			if e.State == browser.DownloadProgressStateCompleted {
				return
			}
		}
	}
	save("json")
	want, err := json.Marshal(set)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(dir, "kvbench.json"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "byte for byte")
	saved, err := results.Load(filepath.Join(dir, "kvbench.json"))
	require.NoError(t, err, "it is a set of results again")
	require.Len(t, saved.Cells, len(set))
	save("csv")
	got, err = os.ReadFile(filepath.Join(dir, "kvbench.csv"))
	require.NoError(t, err)
	require.Equal(t, d.CSV, string(got))
}

// dropFiles compares files of results, and drops what is none.
func dropFiles(t *testing.T, b *tab, _ *Data, set []*cell.Result) {
	dir := t.TempDir()
	write := func(name string, content any) string {
		data, err := json.Marshal(content)
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	other := *set[2]
	other.Metrics = slices.Clone(other.Metrics)
	at := slices.IndexFunc(other.Metrics, func(m cell.Metric) bool { return m.Name() == "absent blocks/op" })
	other.Metrics[at].Value *= 1.5
	first, second := write("a.json", set), write("b.json", []*cell.Result{&other})
	broken := filepath.Join(dir, "broken.json")
	require.NoError(t, os.WriteFile(broken, []byte(`[{"schema": "kvb`), 0o600))

	target, verdict := `document.getElementById("drop")`, `document.getElementById("verdict").textContent`
	said := func(text string) {
		b.wait(verdict + `.includes("` + text + `")`)
		eval[any](b, `document.getElementById("verdict").textContent = ""`)
	}
	b.drop(target, first, second)
	said("1 cells in both; counters: " + strconv.Itoa(counters(&other)-1) + " equal, 1 changed")
	require.Equal(t, []string{"absent", "blocks/op", "counter", "+50.00 %"}, eval[[]string](b, `(() => {
		const row = document.querySelector("#differences tbody tr").cells;
		return [1, 2, 3, 6].map((i) => row[i].textContent);
	})()`))
	require.Equal(t, 1, eval[int](b, `document.querySelectorAll("#differences td.worse").length`))

	b.drop(target, broken)
	said("Cannot compare: ")
	require.Zero(t, eval[int](b, `document.getElementById("differences").children.length`))
	b.drop(target, write("strange.json", []any{nil, map[string]int{"schema": 1}, "x"}))
	said("has no cells of the schema kvbench.rows/v2")
	b.drop(target, write("odd.json", []any{map[string]any{"schema": "kvbench.rows/v2", "experiment": "cell",
		"rows": []any{}}}))
	said("the two sets have no cell of equal settings")
	b.drop(target, first, first, first)
	said("choose one file or two")

	b.do(chromedp.SetUploadFiles(chromedp.ID("files"), []string{first}))
	said(strconv.Itoa(len(set)) + " cells in both")
}

// counters returns how many exact metrics a result has.
func counters(r *cell.Result) int {
	n := 0
	for _, m := range r.Metrics {
		if m.Exact && m.Level == "" {
			n++
		}
	}
	return n
}

// seeOnPhone finds nothing wider than the window.
func seeOnPhone(t *testing.T, b *tab, d *Data, _ []*cell.Result) {
	command(b, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 2, Mobile: true})
	b.wait(`innerWidth === 390`)
	for _, c := range d.Charts {
		if c.Form != Ratios {
			b.wait(plotOf(c.ID) + `.getWidth() < 390`)
		}
	}
	require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 390)
	command(b, emulation.ClearDeviceMetricsOverride, struct{}{})
	b.wait(`innerWidth > 390`)
}

// printPage prints the page: its tables are on the sheets, its buttons are not.
func printPage(t *testing.T, b *tab, d *Data, _ []*cell.Result) {
	b.click(`document.getElementById("theme")`)
	sheets := get(b, chromedp.PrintToPDF())
	require.True(t, bytes.HasPrefix(sheets, []byte("%PDF")))
	require.Greater(t, len(sheets), 50_000)
	require.Equal(t, "dark", eval[string](b, `document.documentElement.dataset.theme`),
		"the theme is again what it was")
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	require.Equal(t, len(d.Grids), eval[int](b,
		`[...document.querySelectorAll("#grids table")].filter((t) => t.getBoundingClientRect().height > 100).length`))
	require.False(t, eval[bool](b, `[...document.querySelectorAll("button, nav, #compare")]`+
		`.some((n) => !n.closest("th") && n.checkVisibility())`))
}

// raiseAlarm does what must not happen: it is blocked, and noted.
func raiseAlarm(t *testing.T, b *tab, _ *Data, _ []*cell.Result) {
	b.quiet()
	eval[any](b, `void (new Image().src = "http://127.0.0.1:9/"); console.warn("a warning"); `+
		`setTimeout(() => { window.thrown = true; throw new Error("an exception"); })`)
	b.wait(`window.thrown`)
	require.Equal(t, 1, eval[int](b, "1"))
	b.mu.Lock()
	defer b.mu.Unlock()
	noted := strings.Join(append(b.console, b.requests...), "\n")
	require.Contains(t, noted, "console.warning")
	require.Contains(t, noted, "Uncaught")
	require.Contains(t, noted, "Content Security Policy")
	b.console, b.requests = nil, nil
}

// chartOf returns a chart by its ID.
func chartOf(t *testing.T, d *Data, id string) *Chart {
	t.Helper()
	at := slices.IndexFunc(d.Charts, func(c Chart) bool { return c.ID == id })
	require.GreaterOrEqual(t, at, 0, id)
	return &d.Charts[at]
}
