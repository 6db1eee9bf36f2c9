package conformance

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Sizes returns the sizes at which tables and chunks turn over: 0 to 3, the powers
// of two and their neighbours up to most, and most.
func Sizes(most int) []int {
	sizes := []int{0, 1, 2, 3, most}
	for p := 4; p < most; p *= 2 {
		sizes = append(sizes, p-1, p, p+1)
	}
	return sizes
}

// NoFalseNegatives builds filters of all sizes up to most and looks each key up.
func NoFalseNegatives(t *testing.T, spec string, most int) {
	t.Helper()
	most = Share(most)
	for _, n := range Sizes(most) {
		data := Build(t, spec, Good(1), n)
		requireAll(t, spec, data, Good(1), n)
	}
	for _, in := range Unmixed {
		for _, n := range []int{3, Share(1000), most / 8} {
			requireAll(t, spec, Build(t, spec, in, n), in, n)
		}
	}
}

// Hostility builds filters of hashes made against them. A builder may decline them;
// it must come to an end, leave dst alone, be ready for the next file, and lose no
// key when it does not decline.
func Hostility(t *testing.T, spec string) {
	t.Helper()
	n := max(500, Share(5000)) // families that search a crowd take quadratic time
	p := Policy(t, spec)
	b := p.NewBuilder()
	for _, in := range Hostile {
		for i := range uint64(n) {
			b.AddHash(in.At(i))
		}
		data, ok := b.Finish([]byte("before"))
		require.Equal(t, "before", string(data[:6]))
		if !ok {
			t.Logf("%s declines %d keys of %q", spec, n, in.Name)
			require.Len(t, data, 6)
			continue
		}
		requireAll(t, spec, data[6:], in, n)
	}
	data, ok := tryBuild(b, Good(1), 100)
	require.True(t, ok)
	require.Equal(t, Build(t, spec, Good(1), 100), data)
}

// Empty checks that the filter of no keys says no, and that one zero hash is a key.
func Empty(t *testing.T, spec string) {
	t.Helper()
	b := Policy(t, spec).NewBuilder()
	data, ok := b.Finish(nil)
	require.True(t, ok)
	f, probe := Open(t, spec, data), prober(t, spec)
	for i := range uint64(1000) {
		for _, h := range []uint64{i, ^i, Good(1).At(i)} {
			require.False(t, f.MayContainHash(h))
			require.False(t, probe(data, h))
		}
	}
	b.AddHash(0)
	data, ok = b.Finish(nil)
	require.True(t, ok)
	require.True(t, Open(t, spec, data).MayContainHash(0))
	require.False(t, Open(t, spec, data).MayContainHash(1))
}

// Duplicates checks that hashes given many times stay keys, and that consecutive
// ones leave no trace in the bytes.
func Duplicates(t *testing.T, spec string) {
	t.Helper()
	n := max(500, Share(3000))
	b, in := Policy(t, spec).NewBuilder(), Good(1)
	for i := range uint64(n) {
		for range i%5 + 1 {
			b.AddHash(in.At(i))
		}
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	require.Equal(t, Build(t, spec, in, n), data)

	for _, distinct := range []uint64{1, 2, 3, uint64(n) / 10, uint64(n) / 2, uint64(n) - 1} {
		repeated := Input{"repeated", func(i uint64) uint64 { return in.At(i % distinct) }}
		requireAll(t, spec, Build(t, spec, repeated, n), in, int(distinct))
	}
}

// DuplicatesAreFree checks that keys given in a thousand guises, one of them in
// between all others, make a filter as large as they do once, but for a share.
func DuplicatesAreFree(t *testing.T, spec string, share float64) {
	t.Helper()
	const distinct, times = 3000, 20
	b, in := Policy(t, spec).NewBuilder(), Good(1)
	for range times {
		for i := range uint64(distinct) {
			b.AddHash(in.At(i))
			b.AddHash(in.At(0))
		}
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	require.InDelta(t, len(Build(t, spec, in, distinct)), len(data), share*float64(len(data)))
	requireAll(t, spec, data, in, distinct)
}

// A List is a filter that can tell the values that it knows hashes by.
type List interface {
	Value(h uint64) uint64
	All() iter.Seq[uint64]
}

// ListsItsKeys checks that All yields the values of n keys, each once and in
// order.
func ListsItsKeys[F List](t *testing.T, spec string, decode func(data []byte) (F, error), n int) F {
	t.Helper()
	in := Good(1)
	f, err := decode(Build(t, spec, in, n))
	require.NoError(t, err)
	var want []uint64
	for i := range uint64(n) {
		want = append(want, f.Value(in.At(i)))
	}
	slices.Sort(want)
	require.Equal(t, slices.Compact(want), slices.Collect(f.All()))
	for range f.All() {
		break
	}
	return f
}

// Reuse checks that a builder's bytes depend on nothing but the hashes: not on what
// it built before, nor on dst, nor on the bytes that dst's memory held.
func Reuse(t *testing.T, spec string) {
	t.Helper()
	b := Policy(t, spec).NewBuilder()
	dirty := slices.Repeat([]byte{0xff}, 1<<16)
	for _, n := range []int{100, 0, Share(20_000), 100, 1} {
		for i := range uint64(n) {
			b.AddHash(Good(1).At(i))
		}
		data, ok := b.Finish(dirty[:7])
		require.True(t, ok)
		require.Equal(t, slices.Repeat([]byte{0xff}, 7), data[:7])
		require.Equal(t, Build(t, spec, Good(1), n), data[7:])
	}
}

// Alignment checks that a filter works at any address.
func Alignment(t *testing.T, spec string) {
	t.Helper()
	data := Build(t, spec, Good(1), 500)
	for offset := range 9 {
		moved := append(make([]byte, offset, offset+len(data)), data...)[offset:]
		requireAll(t, spec, moved, Good(1), 500)
	}
}

// NoAllocations checks that probes allocate nothing.
func NoAllocations(t *testing.T, spec string) {
	t.Helper()
	data := Build(t, spec, Good(1), 1000)
	f, probe := Open(t, spec, data), prober(t, spec)
	h := uint64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		h++
		f.MayContainHash(h)
		probe(data, h)
	}))
}
