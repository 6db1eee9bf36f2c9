package conformance

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Lengths of the parts of an encoded set, as they are described where it is written.
const (
	cuckooHeadLen  = 8
	cuckooTableLen = 48
	cuckooAsideLen = 16
	cuckooGuardLen = 12
)

// cuckooSamples are sets that use every part of the format.
func cuckooSamples(tb testing.TB) map[string]*cuckoo.Set {
	tb.Helper()
	sample := func(n, keys uint64, o cuckoo.Options) *cuckoo.Set {
		s := cuckooNewSet(tb, int(n), 0, o)
		for i := range keys {
			_ = s.AddHash(Good(1).At(i % max(1, keys*2/3)))
		}
		return s
	}
	return map[string]*cuckoo.Set{
		"empty":   sample(1, 0, cuckoo.Options{Bits: 12}),
		"one":     sample(1, 1, cuckoo.Options{Bits: 12}),
		"plain":   sample(20, 20, cuckoo.Options{Bits: 12}),
		"victim":  sample(3, 200, cuckoo.Options{Bits: 9, Slots: 2}),
		"chain":   sample(4, 60, cuckoo.Options{Bits: 5, Slots: 2, Grow: 2}),
		"guarded": sample(4, 10, cuckoo.Options{Bits: 31, Slots: 8, Guard: true}),
		"guard":   sample(1, 0, cuckoo.Options{Bits: 4, Guard: true}),
	}
}

// cuckooCellsLen returns the bytes of a table's cells.
func cuckooCellsLen(buckets, slots, bits int) int { return (buckets*slots*bits+7)/8 + 7 }

func TestCuckooSamplesUseTheWholeFormat(t *testing.T) {
	all, le := cuckooSamples(t), binary.LittleEndian
	const first = PayloadAt + cuckooHeadLen
	require.NotZero(t, le.Uint32(Bytes(t, all["victim"])[first+32:]))
	require.Greater(t, all["chain"].Tables(), 2)
	require.NotZero(t, le.Uint64(Bytes(t, all["chain"])[first+40:]))
	require.Equal(t, byte(1), Bytes(t, all["guarded"])[PayloadAt+3])
}

func TestCuckooSetGoldenSamples(t *testing.T) { Samples(t, "cuckoo", cuckooSamples(t), cuckooZeroSet) }

// Descriptions that do not fit the tables are refused though their checksum is right.
func TestCuckooSetForgery(t *testing.T) {
	all := cuckooSamples(t)
	const head = PayloadAt
	const first = head + cuckooHeadLen // the first table
	le := binary.LittleEndian
	forge := func(name, what string, change func(data []byte) []byte) {
		t.Helper()
		data := Bytes(t, all[name])
		forged := ResealSet(change(slices.Clone(data)))
		require.NotEqual(t, data, forged)
		err := new(cuckoo.Set).UnmarshalBinary(forged)
		require.ErrorIs(t, err, frame.ErrCorrupt)
		require.ErrorContains(t, err, what)
	}
	set := func(at int, v byte) func([]byte) []byte {
		return func(d []byte) []byte { d[at] = v; return d }
	}
	put := func(at int, v uint64) func([]byte) []byte {
		return func(d []byte) []byte { le.PutUint64(d[at:], v); return d }
	}
	forge("plain", "version is 2", set(VersionAt, 2))
	for at, v := range []byte{3, 5, 9, 2, 0} {
		forge("plain", "no cuckoo set has parameters", set(head+at, v))
	}
	forge("plain", "no cuckoo set has parameters", set(head+7, 1))
	forge("plain", "cut short", set(head+4, 2))
	forge("chain", "bytes follow the set", set(head+4, 1))
	for _, buckets := range []uint64{0, 1, 5, 1<<63 + 1} {
		forge("plain", "no table has", put(first, buckets))
	}
	for _, buckets := range []uint64{1 << 20, 1 << 40, 1 << 58, 1 << 61, 1 << 63, math.MaxUint64 - 1} {
		forge("plain", "cut short", put(first, buckets))
	}
	forge("plain", "classes, the set says", put(first+8, 21))
	forge("plain", "classes, the set says", put(first+16, 1))
	forge("plain", "classes, the set says", put(first+16, 21))
	forge("plain", "is no victim", put(first+24, 1))
	forge("victim", "is no victim", put(first+24, 1000))
	forge("victim", "is no victim", set(first+33, 2))
	forge("plain", "no table has", set(first+36, 11))
	forge("plain", "no table has", set(first+36, 33))
	forge("plain", "cut short", put(first+40, math.MaxUint64))
	forge("plain", "after the last slot", func(d []byte) []byte { d[len(d)-5] = 1; return d })
	forge("plain", "1 bytes follow the set", func(d []byte) []byte { return append(d, 0) })

	data := Bytes(t, all["chain"])
	extra := first + cuckooTableLen + cuckooCellsLen(int(le.Uint64(data[first:])), 2, 5)
	forge("chain", "out of bounds or order", put(extra, 1<<40))
	forge("chain", "out of bounds or order", set(extra+8, 0))
	forge("chain", "out of bounds or order", set(extra+8, 32))
	forge("chain", "more copies", set(extra+12, 0))
	second := extra + cuckooAsideLen*int(le.Uint64(data[first+40:]))
	require.Equal(t, uint32(6), le.Uint32(data[second+36:]))
	forge("chain", "two tables have fingerprints of", func(d []byte) []byte { return cuckooTwice(d, first, second) })

	count := first + cuckooTableLen + cuckooCellsLen(2, 8, 31)
	require.Equal(t, uint64(6), le.Uint64(Bytes(t, all["guarded"])[count:]))
	forge("guarded", "cut short", put(count, 1<<60))
	forge("guarded", "out of order or there", set(count+8+8, 0))
	forge("guarded", "out of order or there", put(count+8+cuckooGuardLen, 1))
	forge("guarded", "the guard knows", set(count+8+8, 3))
	forge("guard", "cut short", func(d []byte) []byte { return d[:len(d)-3] })
}

// cuckooTwice returns data with its first table, from first to second, in it twice.
func cuckooTwice(data []byte, first, second int) []byte {
	data[PayloadAt+4]++
	return slices.Concat(data[:second], data[first:])
}

// A set that is full takes on a table that is eight times as large, of longer
// fingerprints.
func TestCuckooHostileSets(t *testing.T) {
	for _, s := range cuckooSamples(t) {
		HostileSets(t, cuckooZeroSet, 200, Bytes(t, s))
	}
}

// A set that the decoder accepts must work.
func FuzzCuckooSetDecode(f *testing.F) {
	seeds := [][]byte{[]byte(strings.Repeat("x", 100))}
	for _, s := range cuckooSamples(f) {
		seeds = append(seeds, Bytes(f, s))
	}
	fuzzSet(f, cuckooFamilies["default"].Any().Zero, Use, seeds)
}
