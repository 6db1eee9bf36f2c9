package cutkeys

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Expected returns what theory says of a filter of some number of distinct random keys: its size with everything that
// is written, and the probability of "maybe". The latter is for an empty range in a random place that is narrow
// compared with the distance of two keys.
//
// Both follow from the trie of n random bit strings. A node of depth d has keys below both its children with a
// probability that is known, and then two neighbours have d bits in common. A key differs from the others after as many
// bits as there are nodes above it with another key. The rate is the sum of the intervals that keys stand for: 2^-m /
// (2 ln 2) for many keys. The size is that of a mean filter, within a per cent or two; keys of few different bytes take
// an alphabet that is smaller by up to 150 bytes. A filter of a single key knows up to 64 bytes of it, and is taken to
// be never wrong.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	if keys <= 0 {
		return 0, 0
	}
	n, m, t := float64(keys), float64(p.extra), newTrie(keys)
	groups := math.Ceil(n / groupLen)
	tails := (n - groups) * (t.path + m)
	lengths := (n + groups) * t.lengthBits()
	const rounding = 7 // bits of the two streams' last bytes
	fixed := groups*(2*wordBits+rounding) + 8*(wordLen+sizesLen+frame.FooterLen+alphabetLen(n*(weighed+m)))
	if keys > 1 {
		fpr = min(1, math.Exp2(-m)*t.covered)
	}
	return (tails + lengths + fixed) / n, fpr
}

// narrow is the rate of a filter of many keys with some extra bits.
func narrow(extra int) float64 { return min(1, math.Exp2(-float64(extra))/(2*math.Ln2)) }

// alphabetLen is the bytes of the alphabet of some random bytes.
func alphabetLen(drawn float64) float64 {
	const all = 256
	occur := all * -math.Expm1(drawn*math.Log1p(-1./all))
	return bitmapLen + (occur+3)/2
}

// A trie is what is expected of that of n random bit strings.
type trie struct {
	lengths []float64 // by number of bits: the share of pairs of neighbours with that many in common
	path    float64   // bits of a key from where it parts from the one before to where it is unique
	covered float64   // the sum of 2^-b for all keys, unique by b bits
}

func newTrie(keys int) trie {
	const deepest = wordBits
	n, t := float64(keys), trie{lengths: make([]float64, deepest)}
	// none is the probability that a node of some depth has none of k keys below it.
	none := func(depth int, k float64) float64 {
		return math.Exp(k * math.Log1p(-math.Exp2(-float64(depth))))
	}
	shared, told, before := 0.0, 0.0, 0.0 // before: that a key is unique by fewer bits
	for d := range deepest {
		both := math.Exp2(float64(d)) * (1 - 2*none(d+1, n) + none(d, n))
		if x := math.Exp2(-float64(d + 1)); n*x < 1e-4 { // what rounding leaves of the above
			both = n * (n - 1) * x / 2
		}
		t.lengths[d] = max(0, both) / max(1, n-1)
		shared += both * float64(d)
		apart := none(d+1, n-1) // that d+1 bits, or fewer, are enough
		told += (apart - before) * float64(d+1)
		t.covered += n * (apart - before) * math.Exp2(-float64(d+1))
		before = apart
	}
	t.path = max(0, told-1-shared/n)
	return t
}

// lengthBits is the mean bits of a length in the best Rice code around the median.
func (t *trie) lengthBits() float64 {
	median, sum := 0, 0.0
	for ; median < len(t.lengths)-1; median++ {
		if sum += t.lengths[median]; sum >= 0.5 {
			break
		}
	}
	best := math.Inf(1)
	for rice := range uint(maxRice + 1) {
		mean := float64(1 + rice)
		for d, share := range t.lengths {
			mean += share * float64(numbered(d-median)>>rice)
		}
		best = min(best, mean)
	}
	return best
}
