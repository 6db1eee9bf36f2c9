package quotient

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/internal/property"
)

// stored returns the bytes of a set.
func stored(t require.TestingT, s *Set) []byte {
	data, err := s.MarshalBinary()
	require.NoError(t, err)
	return data
}

// A twin is a set and what must be in it, by values: what the set knows of keys.
type twin struct {
	set    *Set
	values map[uint64]int
}

func newTwin(t require.TestingT, n int, bits, floor uint64) *twin {
	quotients, ok := quotientsFor(uint64(n), bits)
	require.True(t, ok)
	s := &Set{floor: floor}
	require.NoError(t, s.rebuild(quotients, bits, func(func(uint64) bool) {}))
	return &twin{s, map[uint64]int{}}
}

// add adds a key; a refusal must be due, and leave no trace.
func (w *twin) add(t require.TestingT, h uint64) {
	var before []byte
	if len(w.values) == w.set.Cap() {
		before = stored(t, w.set)
	}
	v := w.set.Value(h)
	if err := w.set.AddHash(h); err != nil {
		require.ErrorIs(t, err, ErrFull)
		require.Zero(t, w.values[v])
		require.Len(t, w.values, w.set.Cap())
		require.LessOrEqual(t, w.set.table.bits, w.set.floor)
		require.Equal(t, before, stored(t, w.set))
		return
	}
	w.values[v]++
}

func (w *twin) remove(t require.TestingT, h uint64) {
	v := w.set.Value(h)
	require.Equal(t, w.values[v] != 0, w.set.RemoveHash(h))
	if w.values[v]--; w.values[v] <= 0 {
		delete(w.values, v)
	}
}

func (w *twin) resize(t require.TestingT, n int) {
	before, size := stored(t, w.set), w.set.table.values()
	if err := w.set.Resize(n); err != nil {
		require.ErrorIs(t, err, ErrFull)
		require.Equal(t, before, stored(t, w.set))
		return
	}
	require.GreaterOrEqual(t, w.set.Cap(), n)
	require.Equal(t, size, w.set.table.values())
}

// merge adds a set of some keys, which has a size of its own.
func (w *twin) merge(t require.TestingT, keys []uint64, room int) {
	o := &Set{floor: 1}
	require.NoError(t, o.rebuild(w.set.table.quotients, w.set.table.bits, func(func(uint64) bool) {}))
	_ = o.Resize(room)
	added := map[uint64]int{}
	for _, h := range keys {
		if o.AddHash(h) == nil {
			added[o.Value(h)]++
		}
	}
	before, other := stored(t, w.set), stored(t, o)
	err := w.set.Merge(o)
	require.Equal(t, other, stored(t, o))
	if err != nil {
		require.ErrorIs(t, err, ErrFull)
		require.Equal(t, before, stored(t, w.set))
		return
	}
	for v, n := range added {
		w.values[v] += n
	}
}

// check compares the set with its values, and its bytes with those of a table that was
// written in one go.
func (w *twin) check(t require.TestingT) {
	require.Equal(t, w.values, maps.Collect(w.set.All()))
	sorted := slices.Sorted(maps.Keys(w.values))
	data, blocks, ok := encode(nil, w.set.table.quotients, w.set.table.bits, slices.Values(sorted))
	require.True(t, ok)
	require.Equal(t, blocks, w.set.table.blocks)
	require.Equal(t, data[:len(data)-trailerLen], w.set.table.cells)
	require.Equal(t, sorted, slices.Collect(w.set.table.ascending()))
	n := 0
	for v, times := range w.values {
		require.True(t, w.set.table.has(v))
		require.Equal(t, times, w.set.times(v))
		n += times
	}
	require.Equal(t, n, w.set.Len())
	require.InDelta(t, float64(len(w.values))/float64(w.set.table.values()), w.set.FalsePositiveRate(), 1e-15)
	require.LessOrEqual(t, len(w.values), w.set.Cap())
}

// Every operation in any order, with sets so small and remainders so short that values
// collide, tables fill and grow all the time.
func TestSetIsAMultiset(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		bits := rapid.SampledFrom([]uint64{1, 2, 5, 8, 31, 55, 56}).Draw(t, "bits")
		floor := max(1, bits-min(bits, rapid.Uint64Range(0, 4).Draw(t, "grow")))
		w := newTwin(t, rapid.SampledFrom([]int{1, 3, 60, 61, 100, 200}).Draw(t, "n"), bits, floor)
		keys := rapid.Uint64Range(0, rapid.SampledFrom([]uint64{5, 60, 1000}).Draw(t, "universe"))
		t.Repeat(map[string]func(*rapid.T){
			"add":    func(t *rapid.T) { w.add(t, keys.Draw(t, "key")) },
			"remove": func(t *rapid.T) { w.remove(t, keys.Draw(t, "key")) },
			"addMany": func(t *rapid.T) {
				first := keys.Draw(t, "key")
				for i := range uint64(70) {
					w.add(t, first+i)
				}
			},
			"removeMany": func(t *rapid.T) {
				first := keys.Draw(t, "key")
				for i := range uint64(60) {
					w.remove(t, first+i)
				}
			},
			"addNew": func(t *rapid.T) {
				h := keys.Draw(t, "key")
				contained := w.values[w.set.Value(h)] != 0
				require.Equal(t, contained, w.set.ContainsHash(h))
				added, err := w.set.AddNewHash(h)
				require.Equal(t, !contained && err == nil, added)
				if added {
					w.values[w.set.Value(h)]++
				}
			},
			"resize": func(t *rapid.T) { w.resize(t, rapid.IntRange(-1, 800).Draw(t, "n")) },
			"merge": func(t *rapid.T) {
				w.merge(t, rapid.SliceOfN(keys, 0, 50).Draw(t, "keys"), rapid.IntRange(0, 400).Draw(t, "room"))
			},
			"store": func(t *rapid.T) {
				data := stored(t, w.set)
				w.set = &Set{}
				require.NoError(t, w.set.UnmarshalBinary(data))
				require.Equal(t, data, stored(t, w.set))
			},
			"": func(t *rapid.T) { w.check(t) },
		})
	})
}

// operations returns bytes for FuzzSet, other ones for each seed.
func operations(seed uint64, n int) []byte {
	ops := make([]byte, n)
	for at := range ops {
		ops[at] = byte(hash64.Mix(seed<<32 | uint64(at)))
	}
	return ops
}

// FuzzSet reads operations from bytes: two bits say which, six bits the key.
func FuzzSet(f *testing.F) {
	for i := range uint64(6) {
		f.Add(byte(i), byte(30*i), operations(i, 300))
	}
	f.Fuzz(func(t *testing.T, bits, n byte, ops []byte) {
		w := newTwin(t, 1+int(n%200), 1+uint64(bits%setBits), 1)
		for _, op := range ops[:min(len(ops), 400)] {
			switch h := uint64(op & 63); op >> 6 {
			case 0, 1:
				w.add(t, h)
			case 2:
				w.remove(t, h)
			default:
				w.resize(t, 4*int(h))
			}
		}
		w.check(t)
	})
}

// Runs that reach over many blocks, and beyond the last quotient's, come and go.
func TestCrowdsComeAndGo(t *testing.T) {
	for _, quotient := range []uint64{0, 60, 64, 189} {
		w := newTwin(t, 180, 12, 12) // 190 quotients
		for i := range uint64(500) {
			v := quotient<<12 + i*i%4096
			if !w.set.table.has(v) {
				require.True(t, w.set.table.insert(v))
				w.set.stored++
				w.values[v] = 1
			}
		}
		require.Greater(t, w.set.table.blocks, uint64(4))
		n := 0
		for v := range maps.Clone(w.values) {
			w.set.table.remove(v)
			w.set.stored--
			delete(w.values, v)
			if n++; n%40 == 0 {
				require.Equal(t, slices.Sorted(maps.Keys(w.values)), slices.Collect(w.set.table.ascending()))
			}
		}
		w.check(t)
		require.Equal(t, uint64(3), w.set.table.blocks)
	}
}

// What no offset can tell is refused, and leaves the table as it was.
func TestInsertRefusesCrowds(t *testing.T) {
	s := newTwin(t, 60, 32, 32).set
	require.NoError(t, s.rebuild(64, 32, func(yield func(uint64) bool) {
		for i := uint64(0); i < maxOffset+64 && yield(i); i++ {
		}
	}))
	before := slices.Clone(s.table.cells)
	require.False(t, s.table.insert(math.MaxUint32))
	require.Equal(t, before, s.table.cells)
	s.table.remove(7)
	require.True(t, s.table.insert(math.MaxUint32))
	require.True(t, s.table.has(math.MaxUint32))
}
