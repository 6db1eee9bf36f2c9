package filterpolicy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizedFor is the number of keys for which theory gives a family's bits per key: large enough that fixed costs vanish.
const sizedFor = 1 << 20

// WithBits returns the policy of p's family that makes the best of bitsPerKey bits per key: as many
// as its parameters allow, and no more. It reports false if the family has no filter so small, and for policies that
// are not of this package.
func WithBits(p Policy, bitsPerKey float64) (Policy, bool) {
	if s, ok := p.(salted); ok {
		q, ok := WithBits(s.of, bitsPerKey)
		if !ok {
			return nil, false
		}
		return salted{q}, true
	}
	family, ok := p.(interface {
		withArgs(args string) (Policy, error)
	})
	if !ok {
		return nil, false
	}
	_, args, _ := strings.Cut(p.String(), ":")
	_, rest, more := strings.Cut(args, ",")
	if more {
		rest = "," + rest
	}
	try := func(first string) (Policy, bool) {
		q, err := family.withArgs(first + rest)
		if err != nil {
			return nil, false
		}
		e := Expected(q, sizedFor)
		return q, e.OK && e.BitsPerKey <= bitsPerKey+0.01 // a footer's worth of rounding
	}
	if q, ok := try(fmt.Sprintf("%.3f", math.Floor(bitsPerKey*1000)/1000)); ok {
		return q, true
	}
	for bits := int(min(max(bitsPerKey, 0), 64)) + 1; bits > 0; bits-- {
		if q, ok := try(strconv.Itoa(bits)); ok {
			return q, true
		}
	}
	return nil, false
}

// Spread shares a budget of bytes among the sorted runs of a store (each flush in level 0, and each
// level below, is one). It minimizes the sum of their false-positive rates, which is what an absent
// key costs in reads. It returns the bits per key of each run; 0 means no filter.
//
// The rate of a filter falls as e^(-r b) with its bits per key b, for an r of the family. The sum
// is least if each run's rate is proportional to its number of keys; a rate of 1 needs no bits (N.
// Dayan, M. Athanassoulis and S. Idreos, "Monkey: Optimal Navigable Key-Value Store", SIGMOD 2017).
// So small young runs get more bits per key, and the last level, where the memory is, fewer.
func Spread(p Policy, budgetBytes int64, keys []uint64) []float64 {
	bits := make([]float64, len(keys))
	total := 0.0
	for _, n := range keys {
		total += float64(n)
	}
	r, scale, ok := slope(p)
	if total == 0 || budgetBytes <= 0 || !ok {
		return bits
	}
	// bitsAt returns the bits per key of a run of n keys when a run of one key has the rate e^logRate.
	bitsAt := func(n uint64, logRate float64) float64 {
		return max(0, (scale-logRate-math.Log(max(float64(n), 1)))/r)
	}
	lo, hi := scale-64*r-math.Log(total), scale // all bits one could want, and none
	for range 100 {
		mid := (lo + hi) / 2
		used := 0.0
		for _, n := range keys {
			used += float64(n) * bitsAt(n, mid)
		}
		if used > 8*float64(budgetBytes) {
			lo = mid
		} else {
			hi = mid
		}
	}
	for i, n := range keys {
		bits[i] = bitsAt(n, hi)
	}
	return bits
}

// slope fits ln(rate) = scale - r bits to a family, between about 6 and 12 bits per key.
func slope(p Policy) (r, scale float64, ok bool) {
	few, ok1 := WithBits(p, 6.7)
	many, ok2 := WithBits(p, 12.7)
	if !ok1 || !ok2 {
		return 0, 0, false
	}
	a, b := Expected(few, sizedFor), Expected(many, sizedFor)
	if a.FPR <= b.FPR || b.BitsPerKey <= a.BitsPerKey {
		return 0, 0, false
	}
	r = math.Log(a.FPR/b.FPR) / (b.BitsPerKey - a.BitsPerKey)
	return r, math.Log(a.FPR) + r*a.BitsPerKey, true
}

// An Expectation is what theory says about a filter.
type Expectation struct {
	BitsPerKey float64 // size of the encoded filter over the number of keys
	FPR        float64 // probability of "maybe" for a key that was not added
	OK         bool    // false: nothing is known of this policy
}

// Expected returns what theory says about p's filter of the given number of distinct keys.
//
// The size counts everything that is written, footer and rounding included. It is exact for bloom and blocked. It is
// exact for cuckoo, xor and fuse too, unless attempts at building fail: then they take a few per cent more. For
// families with a size that depends on the hashes (ribbon, gcs, quotient) it is that of a mean filter, within some
// bytes and a per cent or two, as the families' own Expected states. The rates are those of the literature, as each
// family's package states: for bloom the textbook's, for blocked the mean over the random load of the lines, for cuckoo
// that of the table's load. They are means over all filters; one filter of few keys may be a little better or worse.
// The filter of no keys is never wrong, and its bits per key are given as 0. No filter at all, which is what "none"
// makes, has no bits and a rate of 1.
func Expected(p Policy, keys int) Expectation { return expected(p, keys) }

func expected(policy any, keys int) Expectation {
	known, ok := policy.(interface {
		expected(keys int) (bitsPerKey, fpr float64)
	})
	if !ok || keys < 0 {
		return Expectation{}
	}
	bitsPerKey, fpr := known.expected(keys)
	return Expectation{BitsPerKey: bitsPerKey, FPR: fpr, OK: true}
}
