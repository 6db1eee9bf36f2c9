package hostile

import (
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/siftkv/siftkv/internal/scale"
)

// ends is how many bytes at either end of some data Mutants changes one by one: there are
// the numbers that say how to read the rest.
const ends = 72

// extremes are numbers that a decoder may take for a size, a count or an offset, and their widths
// in bytes.
var extremes = []struct {
	number uint64
	width  int
}{{0, 8}, {1, 8}, {math.MaxUint16, 2}, {math.MaxInt32, 4}, {math.MaxUint32, 4}, {1 << 40, 8}, {math.MaxInt64, 8},
	{math.MaxUint64, 8}}

// Mutants yields copies of data with numbers of two, four and eight bytes in place of those near
// its ends, then random copies that are changed at random: always the same ones. They do not have
// right checksums. Only long tests put each number at each place and have all the random changes:
// others put half of the numbers at every other place, and have a fifth.
func Mutants(data []byte, random int) iter.Seq[[]byte] {
	step := scale.Stride(2, 1) // numbers at one place
	return func(yield func([]byte) bool) {
		for at := range data {
			if at >= ends && at < len(data)-ends {
				continue
			}
			for i := at % step; i < len(extremes); i += step {
				x := extremes[i]
				mutant := slices.Clone(data)
				copy(mutant[at:], binary.LittleEndian.AppendUint64(nil, x.number)[:x.width])
				if !yield(mutant) {
					return
				}
			}
		}
		rng := rand.New(rand.NewPCG(uint64(len(data)), 1))
		for range min(scale.Count(random/5, random), random) {
			if !yield(mutate(rng, slices.Clone(data))) {
				return
			}
		}
	}
}

// mutate changes data in one to four places.
func mutate(rng *rand.Rand, data []byte) []byte {
	for range 1 + rng.IntN(4) {
		if len(data) == 0 {
			return data
		}
		at := rng.IntN(len(data))
		end := min(len(data), at+1+rng.IntN(16))
		switch rng.IntN(5) {
		case 0:
			data[at] ^= 1 << rng.IntN(8)
		case 1:
			data[at] = byte(rng.Uint32())
		case 2: // a run of ones: also a uvarint that goes on
			for i := at; i < end; i++ {
				data[i] = 0xff
			}
		case 3:
			data = slices.Delete(data, at, end)
		case 4:
			data = slices.Insert(data, at, data[at:end]...)
		}
	}
	return data
}
