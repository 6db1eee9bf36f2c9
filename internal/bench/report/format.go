package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/bench/engine"
)

// absentCell marks what an engine does not count, or what does not apply.
const absentCell = "-"

// perOp formats a count per lookup. Zero is "0", so that a true zero stands out
// from a small number.
func perOp(c engine.Count, lookups int) string {
	switch {
	case !c.Known() || lookups == 0:
		return absentCell
	case c == 0:
		return "0"
	}
	x := float64(c) / float64(lookups)
	switch {
	case x >= 100:
		return whole(x)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 1:
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return strconv.FormatFloat(x, 'f', 4, 64)
}

// percent formats a fraction with three significant digits and no sign.
func percent(x float64) string {
	x *= 100
	switch {
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x >= 0.1:
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return strconv.FormatFloat(x, 'f', 4, 64)
}

// interval formats a fraction and the ends of its interval as percent does.
func interval(x, low, high float64) string {
	return fmt.Sprintf("%s [%s, %s]", percent(x), percent(low), percent(high))
}

// ratio formats a quotient of times.
func ratio(x float64) string {
	if x >= 10 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// grouped formats an integer with a comma between groups of three digits.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	var out strings.Builder
	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	return sign + out.String()
}

// whole formats a positive number, rounded.
func whole(x float64) string { return grouped(int64(x + 0.5)) }

// times says how many of something there are.
func times(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(int64(n)) + " " + noun + "s"
}
