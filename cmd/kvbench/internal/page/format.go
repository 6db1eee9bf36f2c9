package page

import (
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

// Absent marks what an engine does not count, or what does not apply.
const Absent = "-"

// Fixed formats a number with so many digits after the point.
func Fixed(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

// A Step is a size of numbers from which they have so many digits after the point.
type Step struct {
	From   float64
	Digits int
}

// Grouping is for whole numbers, with a comma between groups of three digits.
const Grouping = -1

// Steps formats a number as the first step says that it reaches.
func Steps(x float64, list ...Step) string {
	for _, s := range list {
		switch {
		case x < s.From:
		case s.Digits == Grouping:
			return Whole(x)
		default:
			return Fixed(x, s.Digits)
		}
	}
	return Fixed(x, list[len(list)-1].Digits)
}

// Figure formats a number with about three digits.
func Figure(x float64) string { return Steps(x, Step{100, Grouping}, Step{10, 1}, Step{0, 2}) }

// Bits formats bits per key.
func Bits(x float64) string {
	if x == 0 {
		return Absent
	}
	return Fixed(x, 2)
}

// Size formats bytes.
func Size[N int | int64 | uint64 | float64](bytes N) string { return bench.Size(bytes).String() }

// Whole formats a positive number, rounded.
func Whole(x float64) string { return Count(int64(x + 0.5)) }

// Times says how many of something there are.
func Times(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// ThreeDigits formats a number with three digits or more, however small. Zero is "0".
func ThreeDigits(x float64) string {
	if x == 0 {
		return "0"
	}
	return Steps(x, Step{1000, Grouping}, Step{10, 1}, Step{1, 2}, Step{0.1, 3}, Step{0.01, 4}, Step{0.001, 5},
		Step{0, 6})
}
