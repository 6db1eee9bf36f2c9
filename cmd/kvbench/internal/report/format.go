package report

import (
	"fmt"
	"math"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
)

// absentCell marks what an engine does not count, or what does not apply.
const absentCell = page.Absent

// A step is a page.Step.
type step page.Step

const grouping = page.Grouping

func fixed(x float64, digits int) string                    { return page.Fixed(x, digits) }
func figure(x float64) string                               { return page.Figure(x) }
func bits(x float64) string                                 { return page.Bits(x) }
func whole(x float64) string                                { return page.Whole(x) }
func times(n int, noun string) string                       { return page.Times(n, noun) }
func count(n any) string                                    { return page.Count(n) }
func word(text string) Item                                 { return page.Word(text) }
func number(x float64, text string) Item                    { return page.Number(x, text) }
func size[N int | int64 | uint64 | float64](bytes N) string { return page.Size(bytes) }

func newGrid(title string, words int, names ...string) *Grid {
	return page.NewGrid(title, words, names...)
}
func newLines(title string, words int, names ...string) *Grid {
	return page.NewLines(title, words, names...)
}

func steps(x float64, list ...step) string {
	all := make([]page.Step, len(list))
	for i, s := range list {
		all[i] = page.Step(s)
	}
	return page.Steps(x, all...)
}

// perOp formats a count per lookup. Zero is "0", so that a true zero stands out
// from a small number.
func perOp(c engine.Count, lookups int) string {
	switch {
	case !c.Known() || lookups == 0:
		return absentCell
	case c == 0:
		return "0"
	}
	return steps(float64(c)/float64(lookups), step{100, grouping}, step{10, 1}, step{1, 3}, step{0, 4})
}

// perOne formats a count per operation.
func perOne(x float64) string {
	const million = 1_000_000
	return perOp(engine.Count(math.Round(x*million)), million)
}

// percent formats a fraction with three significant digits and no sign.
func percent(x float64) string {
	return steps(100*x, step{10, 1}, step{1, 2}, step{0.1, 3}, step{0, 4})
}

// ratio formats a quotient of times.
func ratio(x float64) string { return steps(x, step{10, 0}, step{0, 2}) }

// nanos formats a time per operation.
func nanos(x float64) string { return steps(x, step{100, grouping}, step{0, 1}) }

// seconds formats a time.
func seconds(x float64) string { return fixed(x, 1) }

// between formats a number and the ends of its interval.
func between(format func(float64) string, x, low, high float64) string {
	return fmt.Sprintf("%s [%s, %s]", format(x), format(low), format(high))
}
