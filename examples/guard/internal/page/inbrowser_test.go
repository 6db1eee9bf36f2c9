package page

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/stretchr/testify/require"
)

// TestThePageInABrowser uses the page as a person does. It needs Chromium; where
// SIFTKV_BROWSER is "required", there has to be one.
func TestThePageInABrowser(t *testing.T) {
	path := chromium(t)
	s := serve(t)
	b := openTab(t, path, s.url)
	for _, part := range []struct {
		name string
		test func(t *testing.T, b *tab, s *service)
	}{
		{"opening", open}, {"attack", playAttack}, {"filter", turnFilter}, {"stop", stopAttack},
		{"steadiness", seeItStandStill}, {"widths", resize}, {"names", hearNames}, {"contrast", measureContrast},
		{"lies", seeLies},
	} {
		t.Run(part.name, func(t *testing.T) {
			b.t = t
			part.test(t, b, s)
			b.quiet()
		})
	}
}

// text is the program for what an element says.
func text(id string) string { return `document.getElementById("` + id + `").textContent` }

// points is the program for the number of points of a chart's line.
func points(chart string, line int) string {
	return `[...document.querySelectorAll("#chart-` + chart + ` path")][` + strconv.Itoa(line) +
		`].getAttribute("d").split(/[ML]/).length`
}

// checked is the program for whether the filter is on.
const checked = `document.getElementById("filter").getAttribute("aria-checked")`

// open finds an idle service.
func open(t *testing.T, b *tab, _ *service) {
	b.wait(text("tile-requests") + ` === "0"`)
	require.Equal(t, "no attack yet", eval[string](b, text("state")))
	require.True(t, eval[bool](b, `document.getElementById("stop").disabled`))
	require.Equal(t, "true", eval[string](b, checked))
	b.wait(points("asked", 0) + ` > 10`) // time goes by in the charts
}

// cell is the program for the number in a cell of the table.
func cell(row, column int) string {
	return fmt.Sprintf(`parseInt(document.getElementById("asked").tBodies[0].rows[%d].cells[%d]`+
		`.textContent.replace(",", ""))`, row, column)
}

// playAttack begins an attack and sees figures appear and change.
func playAttack(t *testing.T, b *tab, _ *service) {
	b.click(`#attack`)
	b.wait(text("state") + ` === "the service is under attack"`)
	require.Equal(t, "true", eval[string](b, `document.getElementById("attack").getAttribute("aria-pressed")`))
	require.False(t, eval[bool](b, `document.getElementById("stop").disabled`))
	b.wait(`parseInt(` + text("tile-requests") + `) > 100`)
	b.wait(cell(6, 2) + ` > 1000`) // absent keys
	b.wait(`document.getElementById("verdict").className === "good"`)
	b.wait(points("wait", 1) + ` > 20`)
	require.Regexp(t, `^\d+ of 3,600 s$`, eval[string](b, text("clock")))
	require.Contains(t, eval[string](b, `document.getElementById("asked").textContent`), "no such row")
}

// turnFilter sees the database queries explode, and come down.
func turnFilter(t *testing.T, b *tab, s *service) {
	b.click(`#filter`)
	b.wait(text("tile-ratio") + ` === "10,000"`)
	require.False(t, s.On())
	require.Equal(t, "false", eval[string](b, checked))
	require.Contains(t, eval[string](b, text("filter")), "off")
	require.Equal(t, "the service is under attack · the filter is off", eval[string](b, text("state")))
	require.Equal(t, "bad", eval[string](b, `document.getElementById("verdict").className`))
	b.wait(`document.querySelector("#chart-asked .off") !== null`)
	b.wait(`parseInt(` + text("tile-queries") + `) > 100`)
	b.click(`#filter`)
	b.wait(checked + ` === "true"`)
	require.True(t, s.On())
	b.wait(`parseFloat(` + text("tile-ratio") + `.replace(",", "")) < 1000`)
}

// stopAttack ends the attack.
func stopAttack(t *testing.T, b *tab, _ *service) {
	b.click(`#stop`)
	b.wait(text("state") + ` === "the attack is over"`)
	b.wait(`document.getElementById("stop").disabled`)
	b.wait(text("tile-requests") + ` === "0"`)
	require.Equal(t, "false", eval[string](b, `document.getElementById("attack").getAttribute("aria-pressed")`))
}

// seeItStandStill requires that nothing has moved that nobody touched, since the page was opened.
func seeItStandStill(t *testing.T, b *tab, _ *service) {
	eval[bool](b, `(() => {
		window.shifts = [];
		new PerformanceObserver((list) => window.shifts.push(...list.getEntries()))
			.observe({ type: "layout-shift", buffered: true });
		setTimeout(() => { window.observed = true; }, 500); // there may be none
		return true;
	})()`)
	b.wait(`window.observed`)
	shifts := eval[float64](b, `shifts.reduce((sum, e) => sum + e.value, 0)`)
	require.Less(t, shifts, 0.02, "0.1 is what is called good: %v", eval[[]string](b, `shifts.flatMap((e) =>
		e.sources.map((s) => e.value + " " + (s.node?.outerHTML ?? "").slice(0, 80)))`))
}

// resize looks for parts that stick out of the window.
func resize(t *testing.T, b *tab, _ *service) {
	for _, width := range []int64{360, 768, 1280, 1600} {
		b.resize(width, 900)
		b.wait(`innerWidth === ` + strconv.FormatInt(width, 10))
		b.wait(`[...document.querySelectorAll(".chart svg[role]")].every((svg) =>
			[...svg.querySelectorAll(".grid")].every((l) =>
				l.getAttribute("x2") <= svg.getBoundingClientRect().width))`)
		require.Equal(t, width, eval[int64](b, `document.documentElement.scrollWidth`), "nothing sticks out")
		require.Empty(t, eval[[]string](b, `[...document.querySelectorAll(".tiles dd, .tiles dt, button")]
			.filter((n) => n.scrollWidth > n.clientWidth + 1 && n.clientWidth > 0).map((n) => n.outerHTML)`),
			"nothing is cut off")
	}
}

// hearNames requires names for what a person may use without seeing it.
func hearNames(t *testing.T, b *tab, _ *service) {
	require.Empty(t, eval[[]string](b, `[...document.querySelectorAll("button, a")]
		.filter((n) => !(n.getAttribute("aria-label") || n.textContent).trim()).map((n) => n.outerHTML)`))
	labels := eval[[]string](b, `[...document.querySelectorAll(".chart svg[role=img]")]
		.map((n) => n.getAttribute("aria-label"))`)
	require.Len(t, labels, 4)
	require.Regexp(t, `^Who is asked: filter [\d,]+, cache [\d,]+, database [\d,]+$`, labels[0])
	require.Equal(t, "en", eval[string](b, `document.documentElement.lang`))
	require.Equal(t, "status", eval[string](b, `document.getElementById("state").getAttribute("role")`))
}

// contrast is the program for all texts, and all lines of charts, that are hard to see: those
// whose contrast is below what WCAG 2.2 asks of texts (4.5) and of graphics (3).
const contrast = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
	const rgb = (color) => {
		canvas.clearRect(0, 0, 1, 1);
		canvas.fillStyle = color;
		canvas.fillRect(0, 0, 1, 1);
		return [...canvas.getImageData(0, 0, 1, 1).data];
	};
	const light = (color) => rgb(color).slice(0, 3).map((c) => c / 255)
		.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (node) => {
		for (; node; node = node.parentElement)
			if (rgb(getComputedStyle(node).backgroundColor)[3] > 0) return getComputedStyle(node).backgroundColor;
		return "white";
	};
	const faint = [];
	const check = (node, color, least) => {
		const [a, b] = [light(color), light(behind(node))].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < least) faint.push(least + " " + color + " " + node.outerHTML.slice(0, 80));
	};
	for (const node of document.querySelectorAll("body *")) {
		const style = getComputedStyle(node);
		if (!node.checkVisibility() || node.disabled) continue;
		if ([...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
			check(node, node instanceof SVGElement ? style.fill : style.color, 4.5);
		if (node.matches(".line")) check(node, style.stroke, 3);
	}
	return faint;
})()`

// measureContrast measures in light and in dark.
func measureContrast(t *testing.T, b *tab, s *service) {
	back := `getComputedStyle(document.body).backgroundColor`
	light := eval[string](b, back)
	for _, scheme := range []string{"dark", "light"} {
		command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		b.wait(`matchMedia("(prefers-color-scheme: ` + scheme + `)").matches`)
		require.Equal(t, scheme == "light", eval[string](b, back) == light)
		for _, on := range []bool{true, false} {
			s.Set(on)
			b.wait(checked + ` === "` + strconv.FormatBool(on) + `"`)
			require.Empty(t, eval[[]string](b, contrast), scheme)
		}
		s.Set(true)
	}
}

// seeLies attacks a service that does not tell the truth.
func seeLies(t *testing.T, b *tab, s *service) {
	s.lies.Store(true)
	b.click(`#attack`)
	b.wait(text("alarm") + `.includes("Wrong answers")`)
	require.Contains(t, eval[string](b, text("alarm")), "GET /users/")
	require.Equal(t, "bad", eval[string](b, `document.getElementById("truth").className`))
	b.click(`#stop`)
	b.wait(text("state") + ` === "the attack is over"`)
	s.lies.Store(false)
}

// TestThePageOfAServiceThatGoesAway says so, and finds the service again.
func TestThePageOfAServiceThatGoesAway(t *testing.T) {
	path := chromium(t)
	s := serve(t)
	b := openTab(t, path, s.url)
	b.wait(text("state") + ` === "no attack yet"`)
	eval[bool](b, `(() => {
		window.before = fetch;
		window.fetch = () => Promise.reject(new Error("it is away"));
		return true;
	})()`)
	b.wait(text("state") + `.includes("no connection to the service (it is away)")`)
	b.click(`#attack`)
	b.wait(text("state") + `.includes("it is away")`)
	eval[bool](b, `(() => { window.fetch = window.before; return true; })()`)
	b.wait(text("state") + ` === "no attack yet"`)
	require.False(t, strings.Contains(eval[string](b, text("state")), "away"))
	b.quiet()
}
