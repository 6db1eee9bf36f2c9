package peel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// plain gives each key a place in each of some equal parts.
type plain struct {
	part  uint64
	arity int
}

func (l plain) Size() (cells uint64, arity int) { return l.part * uint64(l.arity), l.arity }

func (l plain) Params() uint32 { return uint32(l.arity) | 0xf0000 }

func (l plain) Locate(zs []uint64, places []Places) {
	for i, z := range zs {
		for j := range l.arity {
			places[i][j] = uint32(uint64(j)*l.part + hash64.Reduce(hash64.Mix(z+uint64(j)), l.part))
		}
	}
}

func collected(hashes ...uint64) *hash64.List {
	var h hash64.List
	for _, x := range hashes {
		h.Add(x)
	}
	return &h
}

func numbers(n int) []uint64 {
	random, all := rand.New(rand.NewPCG(1, uint64(n))), make([]uint64, n)
	for i := range all {
		all[i] = random.Uint64()
	}
	return all
}

func roomy(arity int) func(keys uint64, growth int) Layout {
	return func(keys uint64, _ int) Layout { return plain{(keys*14/10 + 40) / uint64(arity), arity} }
}

// requireAll reads the array bit by bit, as its description says.
func requireAll(t *testing.T, array []byte, l Layout, bits uint64, seed uint32, hashes []uint64) {
	t.Helper()
	_, arity := l.Size()
	for _, h := range hashes {
		zs, places := []uint64{hash64.Mix(h ^ uint64(seed)*hash64.Golden)}, make([]Places, 1)
		l.Locate(zs, places)
		sum := uint64(0)
		for _, cell := range places[0][:arity] {
			for b := range bits {
				at := uint64(cell)*bits + b
				sum ^= uint64(array[at/8]>>(at%8)&1) << b
			}
		}
		require.Equal(t, zs[0]&(1<<bits-1), sum)
	}
}

func TestEveryKeyHasItsFingerprint(t *testing.T) {
	for bits := uint64(minBits); bits <= maxBits; bits++ {
		for _, arity := range []int{3, 4} {
			for _, n := range []int{1, 2, 3, batch - 1, batch + 1, 3000} {
				hashes := numbers(n)
				data, made, ok := build([]byte("before"), collected(hashes...), bits, roomy(arity))
				require.True(t, ok)
				require.Equal(t, "before", string(data[:6]))
				require.Equal(t, uint64(n), made.Keys)
				l := roomy(arity)(made.Keys, 0)
				cells, _ := l.Size()
				require.True(t, holds(data[6:], cells, bits))
				require.Equal(t, make([]byte, 7), data[len(data)-7:])
				requireAll(t, data[6:], l, bits, made.Seed, hashes)
			}
		}
	}
}

// Equal hashes count once, wherever they stand and however many they are.
func TestDuplicatesCountOnce(t *testing.T) {
	const n = 4000
	for _, percent := range []int{0, 1, 10, 50, 90, 99, 100} {
		distinct := max(1, n*(100-percent)/100)
		hashes := numbers(distinct)
		for i := distinct; i < n; i++ {
			hashes = append(hashes, hashes[i%distinct])
		}
		data, made, ok := build(nil, collected(hashes...), 8, roomy(3))
		require.True(t, ok, "%d %%", percent)
		require.Equal(t, uint64(distinct), made.Keys)
		requireAll(t, data, roomy(3)(made.Keys, 0), 8, made.Seed, hashes)
	}
	alternating := slices.Repeat([]uint64{7, 0}, 50_000)
	_, made, ok := build(nil, collected(alternating...), 8, roomy(4))
	require.True(t, ok)
	require.Equal(t, frame.Description{Keys: 2}, made)
}

// A part of any length, of keys that collide in the table as of others, comes out
// without duplicates.
func TestDealFindsAllDuplicates(t *testing.T) {
	for _, n := range []int{0, 1, 2, 511, 512, 513, 5000, 100_000} {
		for name, at := range map[string]func(i int) uint64{
			"counter":   func(i int) uint64 { return uint64(i) },
			"all equal": func(int) uint64 { return ^uint64(0) },
			"repeated":  func(i int) uint64 { return uint64(i % (n/3 + 1)) },
		} {
			salt := uint64(hash64.Golden)
			hashes, want := make([]uint64, n), make([]uint64, n)
			for i := range hashes {
				hashes[i] = at(i)
				want[i] = hash64.Mix(hashes[i] ^ salt)
			}
			s := new(scratch)
			s.deal(collected(hashes...), 1)
			slices.Sort(want)
			slices.Sort(s.keys)
			require.True(t, slices.Equal(slices.Compact(want), s.keys), "%d, %s", n, name)
		}
	}
}

// Parts on either side of the largest that the hash table takes, and far above it, whether
// their keys all differ or repeat.
func TestPartsOfAnySizeLoseTheirDuplicates(t *testing.T) {
	for _, n := range []int{maxSlots/2 - 1, maxSlots / 2, maxSlots/2 + 1, maxSlots - 1, maxSlots, maxSlots + 1} {
		for _, distinct := range []int{1, 2, 16, n} {
			keys := numbers(distinct)
			part := make([]uint64, n)
			for i := range part {
				part[i] = keys[i%distinct]
			}
			s := &scratch{keys: part, ends: []uint32{uint32(n)}}
			s.deduplicate()
			slices.Sort(keys)
			slices.Sort(s.keys)
			require.True(t, slices.Equal(keys, s.keys), "%d keys, %d of them distinct", n, distinct)
		}
	}
}

// Two hashes that alternate share no part with others, and fill theirs to any size.
func TestAlternatingHashesFillPartsToTheBrim(t *testing.T) {
	for _, n := range []int{maxSlots/2 - 1, maxSlots / 2, maxSlots/2 + 1} {
		hashes := slices.Repeat([]uint64{7, 0}, n)
		data, made, ok := build(nil, collected(hashes...), 8, roomy(3))
		require.True(t, ok, "%d times", n)
		require.Equal(t, uint64(2), made.Keys)
		requireAll(t, data, roomy(3)(made.Keys, 0), 8, made.Seed, hashes[:2])
	}
}

// failing gives layouts that no build can succeed with until the given growth.
func failing(until int, calls *[]int) func(keys uint64, growth int) Layout {
	return func(keys uint64, growth int) Layout {
		*calls = append(*calls, growth)
		if growth < until {
			return plain{keys / 3, 3}
		}
		return roomy(3)(keys, 0)
	}
}

func TestFailedAttemptsAreRepeatedThenGrow(t *testing.T) {
	hashes := numbers(1000)
	var calls []int
	data, made, ok := build(nil, collected(hashes...), 12, failing(2, &calls))
	require.True(t, ok)
	require.Equal(t, hash64.Seed(collected(hashes...), 2*seedsPerSize), made.Seed)
	require.Equal(t, append(slices.Repeat([]int{0}, seedsPerSize),
		append(slices.Repeat([]int{1}, seedsPerSize), 2)...), calls)
	requireAll(t, data, roomy(3)(1000, 0), 12, made.Seed, hashes)
}

func TestBuildGivesUp(t *testing.T) {
	var calls []int
	hashes := collected(numbers(1000)...)
	data, made, ok := build([]byte("before"), hashes, 12, failing(sizes, &calls))
	require.False(t, ok)
	require.Equal(t, "before", string(data))
	require.Zero(t, made)
	require.Len(t, calls, sizes*seedsPerSize)

	// Hundreds of keys at one cell are more than can be counted.
	_, _, ok = build(nil, hashes, 12, func(uint64, int) Layout { return plain{1, 3} })
	require.False(t, ok)

	// Too many cells are refused before memory is asked for.
	data, _, ok = build([]byte("x"), hashes, 4, func(uint64, int) Layout { return plain{1 << 31, 3} })
	require.False(t, ok)
	require.Equal(t, "x", string(data))
}

// The footer tells the layout that was built, or that of no keys.
func TestFinishDescribesTheLayout(t *testing.T) {
	plan := Plan{Family: frame.Xor, Bits: 9, Layout: roomy(3)}
	const params = 9 | (3|0xf0000)<<8
	for _, n := range []int{0, 1, 1000} {
		data, ok := plan.Finish([]byte("before"), collected(numbers(n)...))
		require.True(t, ok)
		require.Equal(t, "before", string(data[:6]))
		cells, footer := frame.Peek(data[6:], frame.Xor)
		require.Equal(t, uint32(params), footer.Params())
		require.Equal(t, uint64(n), footer.Keys())
		if n == 0 {
			require.Empty(t, cells)
			require.Zero(t, footer.Units())
			continue
		}
		require.True(t, holds(cells, footer.Units(), 9))
		bits, fpr := plan.Expected(n)
		require.InDelta(t, 8*len(data[6:]), bits*float64(n), 1e-6)
		require.InDelta(t, 1.0/512, fpr, 1e-12)
	}
}

func TestFinishDeclines(t *testing.T) {
	var calls []int
	plan := Plan{Family: frame.Xor, Bits: 9, Layout: failing(sizes, &calls)}
	data, ok := plan.Finish([]byte("before"), collected(slices.Repeat(numbers(1000), 2)...))
	require.False(t, ok)
	require.Equal(t, "before", string(data))
}

func TestExpectedAtTheEdges(t *testing.T) {
	plan := Plan{Family: frame.Xor, Bits: 9, Layout: roomy(3)}
	for _, keys := range []int{-1, 0, math.MaxInt, min(maxCells, math.MaxInt)} {
		bits, fpr := plan.Expected(keys)
		require.Zero(t, bits)
		require.Equal(t, keys > 0, fpr == 1)
		require.Equal(t, keys <= 0, fpr == 0)
	}
}
