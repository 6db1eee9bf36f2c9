package measure

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency bounds what a histogram can hold, in nanoseconds; longer lookups
// count as this long.
const maxLatency = int64(60 * time.Second)

// NewHistogram returns a histogram of nanoseconds, 1 ns to one minute, that
// keeps three significant digits.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, 3) }

// Median returns the median of xs, the mean of the middle two if their number
// is even; NaN if there are none.
func Median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// z95 is the 97.5 % quantile of the standard normal distribution.
const z95 = 1.959963984540054

// Wilson returns the 95 % score interval of a proportion p seen in n trials (E.
// B. Wilson, "Probable inference, the law of succession, and statistical
// inference", JASA 22, 1927). Unlike p +- z*sigma it stays within [0, 1] and is
// right for small p. Without trials it is [0, 1].
func Wilson(p, n float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	z2 := z95 * z95
	middle := p + z2/(2*n)
	spread := z95 * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	scale := 1 + z2/n
	return max(0, (middle-spread)/scale), min(1, (middle+spread)/scale)
}

// TimerCost returns the median time between two readings of the clock: the part
// of every single-lookup latency that is not the lookup's.
func TimerCost() time.Duration {
	const readings = 2001
	gaps := make([]float64, readings)
	for i := range gaps {
		start := time.Now()
		gaps[i] = float64(time.Since(start))
	}
	return time.Duration(Median(gaps))
}
