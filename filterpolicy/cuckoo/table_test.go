package cuckoo

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

func eachPolicy(f func(p Policy)) {
	for _, slots := range []uint8{2, 4, 8} {
		for bits := uint8(minBits); bits <= maxBits; bits++ {
			f(Policy{bits: bits, slots: slots})
		}
	}
}

// read returns a slot the slow way: bit by bit, as the format says.
func read(t *table, slot uint64) (value uint64) {
	for b := range t.bits {
		at := slot*t.bits + b
		value |= uint64(t.cells[at/8]>>(at%8)&1) << b
	}
	return value
}

// The packed operations agree with a plain slice of slots, for every shape.
func TestTableAgreesWithASlice(t *testing.T) {
	eachPolicy(func(p Policy) {
		random := rand.New(rand.NewPCG(uint64(p.bits), uint64(p.slots)))
		packed := newTable(p, 6, 0)
		slots := uint64(p.slots)
		model := make([]uint64, 6*slots)
		for range 400 {
			bucket, value := random.Uint64N(6), 1+random.Uint64N(packed.values)
			if random.IntN(4) == 0 {
				value = 1 + value%2 // neighbouring values try the borrows between lanes
			}
			own := model[bucket*slots : (bucket+1)*slots]
			require.Equal(t, slices.Contains(own, value), packed.has(bucket, value), "%s", p)
			switch free := slices.Index(own, 0); {
			case random.IntN(3) == 0:
				slot := random.Uint64N(slots)
				require.Equal(t, own[slot], packed.swap(bucket, slot, value), "%s", p)
				own[slot] = value
			case free < 0:
				require.False(t, packed.put(bucket, value), "%s", p)
			default:
				require.True(t, packed.put(bucket, value), "%s", p)
				own[free] = value
			}
		}
		for i, want := range model {
			require.Equal(t, want, read(packed, uint64(i)), "%s", p)
		}
		require.Equal(t, make([]byte, padding), packed.cells[len(packed.cells)-padding:], "%s", p)
	})
}

// Either bucket of a fingerprint leads to the other, in tables of any even size.
func TestOtherIsAnInvolutionWithoutFixedPoints(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		some := table{shape: shapeOf(12, 4), buckets: 2 * (1 + random.Uint64N(1<<random.IntN(40))),
			seed: random.Uint32()}
		fingerprint, i := some.locate(random.Uint64())
		j := some.other(fingerprint, i)
		require.Less(t, i, some.buckets)
		require.Less(t, j, some.buckets)
		require.NotEqual(t, i, j)
		require.Equal(t, i, some.other(fingerprint, j))
		require.NotZero(t, fingerprint)
		require.LessOrEqual(t, fingerprint, some.values)
	}
}

// No word of any shape needs a ninth byte, and lanes do not overlap.
func TestShapesFitTheirLoads(t *testing.T) {
	eachPolicy(func(p Policy) {
		s := p.shape()
		require.NotNil(t, s)
		lanes := uint64(1) << s.lanesLog
		require.Equal(t, s.slots, s.words*lanes)
		require.Equal(t, s.bits*lanes, s.wordBits)
		for i := range uint64(64) {
			require.LessOrEqual(t, i*s.wordBits%8+s.wordBits, uint64(64), "%s", p)
		}
		for buckets := uint64(2); buckets < 40; buckets += 2 {
			last := (buckets*s.words - 1) * s.wordBits / 8
			require.LessOrEqual(t, last+8, s.size(buckets), "%s", p)
		}
	})
	for _, p := range [][2]uint32{{0, 4}, {3, 4}, {33, 4}, {12, 0}, {12, 1}, {12, 3}, {12, 5}, {12, 9}, {12, 256 + 4},
		{256 + 12, 4}} {
		require.Nil(t, shapeOf(p[0], p[1]), "%v", p)
	}
}

// A table that is too small is given up, soon and without harm.
func TestFillGivesUp(t *testing.T) {
	var hashes hash64.List
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		hashes.Add(random.Uint64())
	}
	for _, buckets := range []uint64{2, 200, 240} {
		stored, ok := newTable(Policy{bits: 12, slots: 4}, buckets, 0).fill(&hashes)
		require.False(t, ok)
		require.LessOrEqual(t, stored, 4*buckets+1)
	}
	stored, ok := newTable(Policy{bits: 12, slots: 4}, 270, 0).fill(&hashes)
	require.True(t, ok)
	require.InDelta(t, 1000, stored, 10)
}

func TestDistinctUndoesAbsorption(t *testing.T) {
	p := Policy{bits: 4, slots: 4}
	short := newTable(p, 2700, 0)
	var hashes hash64.List
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		hashes.Add(random.Uint64())
	}
	stored, ok := short.fill(&hashes)
	require.True(t, ok)
	require.Less(t, stored, uint64(8500), "short fingerprints coincide")
	require.InEpsilon(t, 10_000, p.distinct(1<<40, stored, 2700), 0.03)
	require.Equal(t, uint64(9000), p.distinct(9000, stored, 2700))
	require.Equal(t, uint64(77), p.distinct(77, 2700*15/2, 2700), "a table of every value")
}
