package report

import (
	"fmt"
	"math"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
)

// absentCell marks what an engine does not count, or what does not apply.
const absentCell = "-"

func times(n int, noun string) string                       { return page.Times(n, noun) }
func count(n any) string                                    { return page.Count(n) }
func size[N int | int64 | uint64 | float64](bytes N) string { return page.Size(bytes) }

// fixed formats a number with a number of digits after the point.
func fixed(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

// A step says how many digits after the point a number has if it reaches the step.
type step struct {
	from   float64
	digits int
}

// grouping is for whole numbers, with a comma between groups of three digits.
const grouping = -1

// steps formats a number as the first step says that it reaches.
func steps(x float64, list ...step) string {
	for _, s := range list {
		switch {
		case x < s.from:
		case s.digits == grouping:
			return whole(x)
		default:
			return fixed(x, s.digits)
		}
	}
	return fixed(x, list[len(list)-1].digits)
}

// figure formats a number with about three digits.
func figure(x float64) string { return steps(x, step{100, grouping}, step{10, 1}, step{0, 2}) }

// bits formats bits per key.
func bits(x float64) string {
	if x == 0 {
		return absentCell
	}
	return fixed(x, 2)
}

// whole formats a positive number, rounded.
func whole(x float64) string { return count(int64(x + 0.5)) }

// threeDigits formats a number with three digits or more, however small. Zero is "0".
func threeDigits(x float64) string {
	if x == 0 {
		return "0"
	}
	return steps(x, step{1000, grouping}, step{10, 1}, step{1, 2}, step{0.1, 3}, step{0.01, 4}, step{0.001, 5},
		step{0, 6})
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
