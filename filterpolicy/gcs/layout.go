package gcs

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// The cells of a Golomb-coded set are an index, the codes, eight zero bytes, and
// three numbers. The footer's units are the buckets m; its first parameter is the bits w of a
// deviation. With p(i) the bit of the codes at which bucket i begins, p(m) their end:
//
//	bases       u64 ...  for each 64 of the m+1 positions p(0) .. p(m), the last ones fewer
//	deviations  w bits   for each position, from the lowest bit of a byte up; zeros
//	                     follow up to a multiple of eight bytes, and eight more
//	codes       bits     from the lowest of a byte up; zeros fill the last byte
//	padding     u64      0
//	width       u64      values of a bucket
//	divisor     u64      of the Golomb code, 1 to 2^32-1
//	stride      u64      bits of a bucket, about
//
//	p(i) = base i/64 + (i%64) * stride + deviation i, modulo 2^64
//
// A hash h is in one bucket and has one value there:
//
//	z = mix(h);  z * m = bucket * 2^64 + remainder
//	value = (remainder * width) >> 64, the product taken at 128 bits
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// The codes of a bucket are its distinct values in ascending order, each less the one before and less 1; the first as
// it is. A number x is written as x/divisor zeros, a one, and r = x%divisor in truncated binary. Let k be the bits of
// divisor-1, but at least 1, and short = 2^k - divisor. If r < short, k-1 bits hold r. Else they hold r or r - (divisor
// - 2^(k-1)), whichever is below 2^(k-1), and a further bit is 1 in the second case.
const (
	wordLen    = 8
	trailerLen = 4 * wordLen // the padding and the numbers
	groupLen   = 64          // positions with one base
	bucketKeys = 128         // on average
	maxKeys    = 1 << 30     // whose values stay below 2^63 at the highest bits
	maxOffset  = 56          // bits of a deviation that any eight bytes hold
)

// locate returns the bucket of a mixed hash and its value there. Both ascend with z.
func locate(z, buckets, width uint64) (bucket, value uint64) {
	bucket, remainder := bits.Mul64(z, buckets)
	return bucket, hash64.Reduce(remainder, width)
}

// fixed is the fractional bits of the values per key, few enough for them to be the same on every machine.
const fixed = 20

// valuesPerKey returns the size of the range per key, 2^b in fixed point.
func valuesPerKey(b spec.Bits) uint64 {
	factor := math.Exp2(float64(b%spec.One) / float64(spec.One))
	return uint64(math.Round(factor*(1<<fixed))) << (b / spec.One)
}

// A geometry is how many buckets the values of some keys fall into, how wide these are,
// and the divisor that suits the differences.
type geometry struct{ buckets, width, divisor uint64 }

func geometryOf(b spec.Bits, n uint64) geometry {
	perKey := valuesPerKey(b)
	buckets := (n + bucketKeys - 1) / bucketKeys
	high, low := bits.Mul64(perKey, n)
	width, _ := bits.Div64(high, low, buckets<<fixed)
	divisor := uint64(math.Round(float64(perKey) / (1 << fixed) * math.Ln2))
	return geometry{buckets, width + 1, max(1, divisor)}
}

// index is where buckets begin.
type index struct {
	bases      []byte
	deviations []byte
	offset     uint64 // bits of a deviation
	stride     uint64
}

// sizes returns the bytes of the bases and of the deviations of a number of positions.
func sizes(positions, offset uint64) (bases, deviations uint64) {
	return (positions + groupLen - 1) / groupLen * wordLen, ((positions*offset+63)/64 + 1) * wordLen
}

func (x *index) at(i uint64) uint64 {
	base := binary.LittleEndian.Uint64(x.bases[i/groupLen*wordLen:])
	return base + i%groupLen*x.stride + word(x.deviations, i*x.offset)&(1<<x.offset-1)
}

// newIndex appends the index of some positions to dst and returns it with the bits of a deviation.
func newIndex(dst []byte, positions []uint64, stride uint64) (data []byte, offset uint32) {
	spread := uint64(0)
	for begin := 0; begin < len(positions); begin += groupLen {
		base, most := straighten(positions[begin:min(begin+groupLen, len(positions))], stride)
		spread = max(spread, most)
		dst = binary.LittleEndian.AppendUint64(dst, base)
	}
	w := writer{bytes: dst}
	start, width := len(dst), uint(bits.Len64(spread))
	for _, deviation := range positions {
		w.write(deviation, width)
	}
	w.flush()
	_, size := sizes(uint64(len(positions)), uint64(width))
	return append(w.bytes, make([]byte, start+int(size)-len(w.bytes))...), uint32(width)
}

// straighten turns the positions of a group into deviations from a line of the given slope, the
// lowest of them 0. It returns the line's base and the largest deviation.
func straighten(group []uint64, stride uint64) (base, most uint64) {
	lowest := int64(math.MaxInt64)
	for j := range group {
		group[j] -= uint64(j) * stride
		lowest = min(lowest, int64(group[j]))
	}
	for j := range group {
		group[j] -= uint64(lowest)
		most = max(most, group[j])
	}
	return uint64(lowest), most
}
