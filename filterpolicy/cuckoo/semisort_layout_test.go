package cuckoo

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Every tuple has a code of its own below 3876, and the code leads back to it.
func TestCodesAreTheTuples(t *testing.T) {
	next := uint64(0) // codes are ranks: they ascend with d, c, b, a in this order
	for d := range uint64(16) {
		for c := range d + 1 {
			for b := range c + 1 {
				for a := range b + 1 {
					code := codeOf(a, b, c, d)
					require.Equal(t, next, code)
					require.Equal(t, []uint64{a, b, c, d}, tupleOf(code))
					next++
				}
			}
		}
	}
	require.EqualValues(t, codes, next)
	require.Len(t, nibbles, 4096)
}

func tupleOf(code uint64) []uint64 {
	n := uint64(nibbles[code])
	return []uint64{n & 15, n >> 4 & 15, n >> 8 & 15, n >> 12}
}

// bitsOf reads a field the slow way: bit by bit, as the format says.
func bitsOf(cells []byte, at, n uint64) (value uint64) {
	for b := range n {
		value |= uint64(cells[(at+b)/8]>>((at+b)%8)&1) << b
	}
	return value
}

// bucketOf reads a semi-sorted bucket by the description of the format alone.
func bucketOf(cells []byte, bits, bucket uint64) (fingerprints []uint64) {
	at := bucket * (4*bits - 4)
	for slot, low := range tupleOf(bitsOf(cells, at, 12)) {
		fingerprints = append(fingerprints, low|bitsOf(cells, at+12+uint64(slot)*(bits-4), bits-4)<<4)
	}
	return fingerprints
}

func randomTable(bits uint8, buckets uint64) *table {
	random := rand.New(rand.NewPCG(uint64(bits), buckets))
	t := newTable(Policy{bits: bits, slots: semisortSlots}, buckets, 0)
	for bucket := range buckets {
		for range random.IntN(semisortSlots + 1) {
			value := 1 + random.Uint64N(t.values)
			if random.IntN(4) == 0 {
				value = 1 + value%3 // neighbouring values, equal rests and equal low bits
			}
			t.put(bucket, value)
		}
	}
	return t
}

// The cells are as described: of each bucket the same fingerprints in their order,
// and zeros after the last, whatever dst's memory held.
func TestCellsAreAsDescribed(t *testing.T) {
	for bits := uint8(semisortMinBits); bits <= maxBits; bits++ {
		const buckets = 42
		plain, s := randomTable(bits, buckets), sortingOf(uint32(bits))
		dirty := slices.Repeat([]byte{0xff}, 1<<12)
		cells := s.appendCells(dirty[:3], plain)
		require.Equal(t, []byte{0xff, 0xff, 0xff}, cells[:3])
		cells = cells[3:]
		require.Len(t, cells, (buckets*(4*int(bits)-4)+7)/8+7)
		for bucket := range uint64(buckets) {
			var want []uint64
			for slot := range uint64(semisortSlots) {
				want = append(want, read(plain, 4*bucket+slot))
			}
			got := bucketOf(cells, uint64(bits), bucket)
			require.ElementsMatch(t, want, got, "%d bits, bucket %d", bits, bucket)
			require.True(t, slices.IsSortedFunc(got, func(a, b uint64) int {
				return cmp.Or(cmp.Compare(a&15, b&15), cmp.Compare(a>>4, b>>4))
			}), "%d bits, bucket %d: %x", bits, bucket, got)
		}
		used := uint64(buckets) * s.bits
		require.Zero(t, bitsOf(cells, used, min(64, 8*uint64(len(cells))-used)))
	}
}

// A bucket has what the plain bucket has, and nothing else.
func TestSortedBucketsAgreeWithPlainOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for bits := uint8(semisortMinBits); bits <= maxBits; bits++ {
		const buckets = 40
		plain, s := randomTable(bits, buckets), sortingOf(uint32(bits))
		cells := s.appendCells(nil, plain)
		for bucket := range uint64(buckets) {
			for slot := range uint64(semisortSlots) {
				own := plain.at(bucket, slot)
				for _, fingerprint := range []uint64{
					own, own ^ 1, own ^ 8, own ^ 16, own ^ 1<<(bits-1), own + 16,
					own&15 | random.Uint64N(plain.values)&^15, own&^15 | random.Uint64N(16),
					random.Uint64N(plain.values),
				} {
					if fingerprint &= plain.values; fingerprint != 0 {
						require.Equal(t, plain.has(bucket, fingerprint), s.has(cells, bucket, fingerprint),
							"%d bits, bucket %d, %#x", bits, bucket, fingerprint)
					}
				}
			}
		}
	}
}

// A semi-sorted filter gives the plain one's answers, false positives included.
func TestSemisortedAnswersArePlainAnswers(t *testing.T) {
	for bits := uint8(semisortMinBits); bits <= maxBits; bits++ {
		const keys = 2000
		open := func(p Policy) *Filter {
			random, b := rand.New(rand.NewPCG(5, 6)), p.NewBuilder()
			for range keys {
				b.AddHash(random.Uint64())
			}
			data, ok := b.Finish(nil)
			require.True(t, ok)
			f, err := Decode(data)
			require.NoError(t, err)
			return f
		}
		plain, sorted := open(Policy{bits: bits, slots: 4}), open(Policy{bits: bits, slots: 4, semisorted: true})
		require.Equal(t, plain.table.buckets, sorted.table.buckets)
		require.Equal(t, plain.table.seed, sorted.table.seed)
		random := rand.New(rand.NewPCG(5, 6)) // the keys, and then others
		for range 5 * keys {
			h := random.Uint64()
			if plain.MayContainHash(h) != sorted.MayContainHash(h) {
				require.Fail(t, "different answers", "%d bits, %#x", bits, h)
			}
		}
	}
}

// No word of two rests needs a ninth byte, and reads of the last bucket end in the
// padding.
func TestSortingsFitTheirLoads(t *testing.T) {
	for bits := uint64(semisortMinBits); bits <= maxBits; bits++ {
		s := sortingOf(uint32(bits))
		require.NotNil(t, s)
		require.Equal(t, 4*bits-4, s.bits)
		for bucket := range uint64(64) {
			for _, slot := range []uint64{0, 2} {
				require.LessOrEqual(t, (bucket*s.bits+s.at(slot))%8+2*s.rest, uint64(64), "%d bits", bits)
			}
			last := (bucket*s.bits + s.at(3)) / 8
			require.LessOrEqual(t, last+8, s.size(bucket+1), "%d bits", bits)
		}
	}
	for _, bits := range []uint32{0, 4, 33, 1 << 31} {
		require.Nil(t, sortingOf(bits))
	}
}

// A code without a meaning makes a bucket say maybe, not no.
func TestMeaninglessCodesSayMaybe(t *testing.T) {
	for _, bits := range []uint32{semisortMinBits, 12, maxBits} {
		s := sortingOf(bits)
		for code := range uint64(1 << codeBits) {
			cells := make([]byte, s.size(2))
			orBits(cells, s.bits, code)
			absent := uint64(1)<<(bits-1) | code&7 // no rest is set
			require.Equal(t, code >= codes, s.has(cells, 1, absent), "%d bits, code %d", bits, code)
			require.False(t, s.has(cells, 0, absent))
		}
	}
}

// The parameters of the footer tell the kinds apart, and nothing else is a kind.
func TestDecodeKnowsItsParameters(t *testing.T) {
	var f Filter
	for params, want := range map[uint32]bool{
		12 | 4<<8: true, 12 | 4<<8 | 1<<16: true, 5 | 4<<8 | 1<<16: true, 32 | 4<<8 | 1<<16: true,
		4 | 4<<8 | 1<<16: false, 33 | 4<<8 | 1<<16: false, 0 | 4<<8 | 1<<16: false,
		12 | 2<<8 | 1<<16: false, 12 | 8<<8 | 1<<16: false, 12 | 1<<16: false, 12 | (4|0x80)<<8: false,
		12 | 4<<8 | 2<<16: false, 12 | 4<<8 | 1<<24: false, 12 | 4<<8 | 1<<16 | 1<<24: false,
	} {
		data := frame.Description{Params: params}.Seal(nil, 0, frame.Cuckoo)
		_, err := Decode(data)
		require.Equal(t, want, err == nil, "%#x", params)
		cells, footer := frame.Peek(data, frame.Cuckoo)
		f = Filter{}
		require.Equal(t, want, f.view(cells, footer), "%#x", params)
		require.Equal(t, !want, Probe(data, 1), "%#x", params)
	}
}
