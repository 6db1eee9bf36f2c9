package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/property"
)

// A MergeableFilter is a filter that can tell its values and be merged by them.
type MergeableFilter interface {
	filterpolicy.Filter
	List
}

// Mergeable is what a family of filters that can be merged shows of itself.
type Mergeable[F MergeableFilter] struct {
	NewBuilderFor func(keys int) filterpolicy.Builder
	Decode        func(data []byte) (F, error)
	Merge         func(dst []byte, a, b F) ([]byte, error)
	ErrUnlike     error
}

// Build makes a filter of the keys from..to-1 of the good input, with room for some
// number.
func (m Mergeable[F]) Build(t require.TestingT, room int, from, to uint64) (F, []byte) {
	b := m.NewBuilderFor(room)
	for i := from; i < to; i++ {
		b.AddHash(Good(1).At(i))
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	f, err := m.Decode(data)
	require.NoError(t, err)
	return f, data
}

func (m Mergeable[F]) merge(t require.TestingT, a, b F) (F, []byte) {
	data, err := m.Merge([]byte("before"), a, b)
	require.NoError(t, err)
	require.Equal(t, "before", string(data[:6]))
	f, err := m.Decode(data[6:])
	require.NoError(t, err)
	return f, data[6:]
}

// Check holds merges to what they promise.
func (m Mergeable[F]) Check(t *testing.T) {
	t.Helper()
	t.Run("parts of a whole", m.parts)
	t.Run("nothing", m.nothing)
	t.Run("model", func(t *testing.T) { property.Check(t, m.model) })
	t.Run("unlike", func(t *testing.T) {
		a, _ := m.Build(t, 1000, 0, 500)
		b, _ := m.Build(t, 2000, 500, 900)
		data, err := m.Merge([]byte("x"), a, b)
		require.ErrorIs(t, err, m.ErrUnlike)
		require.Equal(t, "x", string(data))
	})
}

// parts of one whole, merged in any order, are the filter of the whole.
func (m Mergeable[F]) parts(t *testing.T) {
	n := uint64(3 * Share(10_000))
	_, whole := m.Build(t, int(n), 0, n)
	a, _ := m.Build(t, int(n), 0, n/3)
	b, _ := m.Build(t, int(n), n/3, n/2)
	c, _ := m.Build(t, int(n), n/2, n)
	for _, order := range [][3]F{{a, b, c}, {c, a, b}, {b, c, a}} {
		two, _ := m.merge(t, order[0], order[1])
		_, three := m.merge(t, two, order[2])
		require.Equal(t, whole, three)
	}
}

func (m Mergeable[F]) nothing(t *testing.T) {
	none, empty := m.Build(t, 1000, 0, 0)
	some, data := m.Build(t, 1000, 0, 500)
	for _, pair := range [][2]F{{none, some}, {some, none}} {
		_, got := m.merge(t, pair[0], pair[1])
		require.Equal(t, data, got)
	}
	_, got := m.merge(t, none, none)
	require.Equal(t, empty, got)
}

// model compares a merge of keys that overlap with the two lists and the two answers that
// it is made of.
func (m Mergeable[F]) model(t *rapid.T) {
	room := rapid.IntRange(1, 2000).Draw(t, "room")
	bound := rapid.Uint64Range(0, uint64(room))
	a, _ := m.Build(t, room, 0, bound.Draw(t, "end of a"))
	from := bound.Draw(t, "start of b")
	b, _ := m.Build(t, room, from, from+rapid.Uint64Range(0, uint64(room)-from).Draw(t, "keys of b"))
	merged, _ := m.merge(t, a, b)

	want := slices.Concat(slices.Collect(a.All()), slices.Collect(b.All()))
	slices.Sort(want)
	require.True(t, slices.Equal(slices.Compact(want), slices.Collect(merged.All())))
	for i := range uint64(2 * room) {
		h := Good(1).At(i)
		require.Equal(t, a.MayContainHash(h) || b.MayContainHash(h), merged.MayContainHash(h))
	}
}

// Fuzz merges any two filters that Decode accepts, whatever is in them: that gives an
// error and nothing, or a filter whose list ascends.
func (m Mergeable[F]) Fuzz(f *testing.F, spec string) {
	for _, n := range []int{0, 1, 50} {
		f.Add(Build(f, spec, Good(1), n), Build(f, spec, Good(2), n))
	}
	f.Fuzz(func(t *testing.T, x, y []byte) {
		const most = 4 << 10 // bytes: merges of filters that speak of much take time
		a, errA := m.Decode(Reseal(x))
		b, errB := m.Decode(Reseal(y))
		if errA != nil || errB != nil || len(x)+len(y) > most {
			return
		}
		m.bounded(t, x, y)
		data, err := m.Merge(nil, a, b)
		if err != nil {
			require.Empty(t, data)
			return
		}
		merged, err := m.Decode(data)
		require.NoError(t, err)
		require.True(t, slices.IsSorted(slices.Collect(merged.All())))
	})
}
