package conformance

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Mutations changes encoded filters at random, with the checksum wrong and made right:
// Decode returns a filter that can be asked or the error of corruption, and the
// unchecked probe survives.
func Mutations(t *testing.T, spec string, rounds int) {
	t.Helper()
	v := victimOf(t, spec)
	var sound [][]byte
	for _, n := range []int{0, 1, 40, 900} {
		sound = append(sound, Build(t, spec, Good(1), n))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		mutant := mutate(random, slices.Clone(sound[random.IntN(len(sound))]))
		v.survives(t, mutant)
		v.survives(t, Reseal(mutant))
	}
}

// footerLen bytes at the end are changed more often than others: they say how to
// read these.
const footerLen = 32

// mutate changes data in one to four places.
func mutate(random *rand.Rand, data []byte) []byte {
	for range 1 + random.IntN(4) {
		at := random.IntN(len(data))
		if random.IntN(2) == 0 {
			at = len(data) - 1 - random.IntN(min(footerLen, len(data)))
		}
		switch random.IntN(6) {
		case 0:
			data[at] ^= 1 << random.IntN(8)
		case 1:
			data[at] = byte(random.Uint32())
		case 2: // a run of extremes
			end := min(len(data), at+1+random.IntN(8))
			for i := at; i < end; i++ {
				data[i] = byte(-(random.IntN(2)))
			}
		case 3: // bytes missing
			data = slices.Delete(data, at, min(len(data), at+1+random.IntN(16)))
		case 4: // bytes twice
			data = slices.Insert(data, at, data[at:min(len(data), at+1+random.IntN(16))]...)
		case 5: // an end of cells
			data = data[at/2:]
		}
		if len(data) == 0 {
			return []byte{0}
		}
	}
	return data
}
