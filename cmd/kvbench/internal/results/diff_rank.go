package results

import (
	"errors"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// Alpha is the chance to call samples of one distribution different.
const Alpha = 0.05

// A Rank is what ranks tell of two samples.
type Rank struct {
	P     float64 `json:"p"`     // two-sided, of the Mann-Whitney U test
	Ratio float64 `json:"ratio"` // of b to a: the Hodges-Lehmann estimate, on the logarithm
	Low   float64 `json:"low"`   // 95 % interval of the ratio
	High  float64 `json:"high"`
	// Level is the confidence that the interval has: less than 0.95 if there are too few
	// samples for that.
	Level float64 `json:"level"`
	N     [2]int  `json:"n"`
}

// rank compares two samples of positive numbers, nil if one is empty. The interval is
// the one that belongs to the test: the ratios that it would not reject (M. Hollander,
// D. Wolfe, "Nonparametric Statistical Methods", section 4.3).
func rank(a, b []float64) *Rank {
	if len(a) == 0 || len(b) == 0 || slices.Min(a) <= 0 || slices.Min(b) <= 0 {
		return nil
	}
	r := &Rank{P: 1, N: [2]int{len(a), len(b)}}
	if test, err := stats.MannWhitneyUTest(a, b, stats.LocationDiffers); err == nil {
		r.P = min(1, test.P)
	} else if !errors.Is(err, stats.ErrSamplesEqual) {
		return nil
	}
	logs := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			logs = append(logs, math.Log(y/x))
		}
	}
	slices.Sort(logs)
	r.Ratio = math.Exp(measure.Median(logs))
	out, level := interval(len(a), len(b))
	r.Low, r.High, r.Level = math.Exp(logs[out]), math.Exp(logs[len(logs)-1-out]), level
	return r
}

// interval returns how many of the sorted quotients to drop at either end for a
// 95 % interval, and the confidence that this gives.
func interval(n, m int) (out int, level float64) {
	if max(n, m) > stats.MannWhitneyExactLimit {
		return normalInterval(n, m), 1 - Alpha
	}
	u := stats.UDist{N1: n, N2: m}
	for out+1 < n*m/2 && u.CDF(float64(out)) <= Alpha/2 {
		out++
	}
	// With out dropped at either end, the interval is missed if U < out at one of them.
	if out == 0 {
		return 0, max(0, 1-2*u.CDF(0))
	}
	return out, 1 - 2*u.CDF(float64(out-1))
}

// normalInterval is the same for large samples.
func normalInterval(n, m int) int {
	const z = 1.959963984540054
	x := float64(n) * float64(m)
	return max(0, int(x/2-z*math.Sqrt(x*float64(n+m+1)/12)))
}
