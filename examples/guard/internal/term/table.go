package term

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/meter"
)

// grid returns rows as a table without frames: words in the first column, and in the last
// one if it is a remark; numbers in the others.
func grid(header []string, rows [][]string, remarks bool) string {
	t := table.NewWriter()
	t.AppendHeader(row(header))
	for _, r := range rows {
		t.AppendRow(row(r))
	}
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Box.MiddleHorizontal = "─"
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	columns := make([]table.ColumnConfig, len(header))
	for i := range header {
		align := text.AlignRight
		if i == 0 || remarks && i == len(header)-1 {
			align = text.AlignLeft
		}
		columns[i] = table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align}
	}
	t.SetColumnConfigs(columns)
	return t.Render() + "\n"
}

func row(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, cell := range cells {
		r[i] = cell
	}
	return r
}

// present is the table of a sample.
func (s *screen) present(title string, now meter.Sample) string {
	a, sum := now.PerSecond, now.Total
	line := func(name string, perSecond, total float64, remark string) []string {
		return []string{name, count(perSecond), count(total), remark}
	}
	table := grid([]string{"", "per second", "in total", ""}, [][]string{
		line("requests", a.Requests, sum.Requests, ""),
		line("  absent keys", a.Absent, sum.Absent, ""),
		line("  users", a.Users, sum.Users, waits(now)),
		line("asked: filter", a.Filter, sum.Filter, share(sum.FilterNo, sum.Filter)+` "no"`),
		line("asked: cache", a.Cache, sum.Cache, share(sum.CacheHits, sum.Cache)+" knew"),
		line("asked: database", a.Queries, sum.Queries, share(sum.Empty, sum.Queries)+" found nothing"),
		line("written", a.Inserts, sum.Inserts, ""),
		line("refused: queue full", a.Shed, sum.Shed, ""),
		line("failed", a.Failed, sum.Failed, ""),
		line("wrong answers", a.Wrong, sum.Wrong, ""),
	}, true)
	if sum.Wrong > 0 {
		table = s.redLine(table, "wrong answers")
	}
	return fmt.Sprintf("%s\n\n%s\ndatabase queries per 10,000 absent keys: %s\n", title, table,
		ratio(now.PerTenThousand))
}

// redLine paints the line of a table that begins with a name.
func (s *screen) redLine(table, name string) string {
	lines := strings.Split(table, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, name) {
			lines[i] = s.red(line)
		}
	}
	return strings.Join(lines, "\n")
}

// plain is a sample in one line.
func plain(now meter.Sample, seconds float64) string {
	a := now.PerSecond
	return fmt.Sprintf("%5.1f s  %s requests/s (%s absent)  users: %s  asked/s: filter %s, cache %s, database %s  "+
		"queries per 10,000 absent keys: %s  failed %s  wrong %s\n",
		seconds, count(a.Requests), count(a.Absent), waits(now), count(a.Filter), count(a.Cache), count(a.Queries),
		ratio(now.PerTenThousand), count(now.Total.Failed), count(now.Total.Wrong))
}

// summary is the table of a report, and its mistakes.
func (s *screen) summary(r load.Report) string {
	var rows [][]string
	for _, kind := range load.Kinds {
		if f, ok := r.Kinds[kind]; ok {
			rows = append(rows, figures(string(kind), f, r.Seconds))
		}
	}
	rows = append(rows, figures("all", r.Everyone, r.Seconds))
	text := grid([]string{"", "requests", "per second", "p50", "p99", "max", "failed", "wrong", "status"}, rows, true)
	if r.Late > 0 {
		text += fmt.Sprintf("\nvisitors who were due, and not served in time: %s\n",
			humanize.Comma(int64(r.Late)))
	}
	if r.Repeated > 0 {
		text += fmt.Sprintf("\npages of feeds that showed an item again: %s; the filter did not answer, or lost it\n",
			humanize.Comma(int64(r.Repeated)))
	}
	if r.Everyone.Wrong > 0 {
		text += "\n" + s.red("WRONG ANSWERS: "+humanize.Comma(int64(r.Everyone.Wrong))) + "\n"
	}
	if len(r.Mistakes) > 0 {
		text += "  " + strings.Join(r.Mistakes, "\n  ") + "\n"
	}
	return text
}

// figures is a row of a summary.
func figures(name string, f load.Figures, seconds float64) []string {
	var statuses []string
	for _, status := range slices.Sorted(maps.Keys(f.Status)) {
		label := strconv.Itoa(status)
		if status == 0 {
			label = "none"
		}
		statuses = append(statuses, label+": "+humanize.Comma(int64(f.Status[status])))
	}
	return []string{
		name, humanize.Comma(int64(f.Requests)), count(float64(f.Requests) / max(seconds, 1e-9)),
		wait(f.Latency.P50), wait(f.Latency.P99), wait(f.Latency.Max),
		humanize.Comma(int64(f.Failed)), humanize.Comma(int64(f.Wrong)), strings.Join(statuses, ", "),
	}
}

// waits tells how long users wait.
func waits(now meter.Sample) string {
	if now.P99 == 0 {
		return "p50 –  p99 –"
	}
	return "p50 " + wait(now.P50) + "  p99 " + wait(now.P99)
}

// count shows a number of things.
func count(x float64) string { return humanize.Comma(int64(math.Round(x))) }

// wait shows microseconds.
func wait(us int64) string {
	switch {
	case us >= 10_000_000:
		return fmt.Sprintf("%.0f s", float64(us)/1e6)
	case us >= 1_000_000:
		return fmt.Sprintf("%.1f s", float64(us)/1e6)
	case us >= 10_000:
		return fmt.Sprintf("%d ms", us/1000)
	}
	return fmt.Sprintf("%.2f ms", float64(us)/1e3)
}

// share shows a part of a whole.
func share(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// ratio shows a number that may not be known.
func ratio(x *float64) string {
	switch {
	case x == nil:
		return "–"
	case *x < 100:
		return fmt.Sprintf("%.1f", *x)
	}
	return count(*x)
}
