package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/filterpolicy"
)

var settings = Settings{
	CacheBytes: 1 << 20, MemtableBytes: 256 << 10, BlockBytes: 4096, Compression: "snappy", Compactions: 1,
	BatchKeys: 100,
}

func key(i int) []byte { return fmt.Appendf(nil, "key-%06d", i) }

// fill writes the even keys below 2n in a scattered order and settles the store.
func fill(t *testing.T, s Store, v keys.Values, n int) {
	t.Helper()
	for i := range n {
		k := key(2 * (i * 7919 % n))
		if err := s.Put(k, v.Append(nil, k)); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, s.Settle(t.Context()))
}

// A grownStore is a store that can rest with several levels.
type grownStore interface {
	Store
	Rest(ctx context.Context) error
}

// fillLevels is fill, and then writes some of the keys again, 40 at a time, with a rest
// after each.
func fillLevels(t *testing.T, s grownStore, v keys.Values, n int) {
	t.Helper()
	fill(t, s, v, n)
	for i := range 22 {
		for j := range 40 {
			k := key(2 * ((i*40 + j) * 7919 % n))
			require.NoError(t, s.Put(k, v.Append(nil, k)))
		}
		require.NoError(t, s.Rest(t.Context()))
	}
}

// ask looks up n existing or absent keys and returns what was counted.
func ask(t *testing.T, s Store, v keys.Values, access Access, kind Kind, n int) Counters {
	t.Helper()
	r, err := s.NewReader(access, kind)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	before, err := r.Counters()
	require.NoError(t, err)
	var dst []byte
	for i := range n {
		k := key(2 * i)
		if kind == Absent {
			k = key(2*i + 1)
		}
		value, found, err := r.Get(append(dst[:0], "prefix"...), k)
		right := err == nil && found == (kind == Existing)
		if right && found {
			rest, appended := bytes.CutPrefix(value, []byte("prefix"))
			ok, _ := v.Check(nil, k, rest)
			right = appended && ok
		}
		if !right {
			t.Fatalf("%s: found %t, value %q, error %v", k, found, value, err)
		}
		dst = value
	}
	after, err := r.Counters()
	require.NoError(t, err)
	return Minus(after, before)
}

func newValues(t *testing.T) keys.Values {
	t.Helper()
	v, err := keys.NewValues(100, 1)
	require.NoError(t, err)
	return v
}

func TestEveryStoreAnswersRightly(t *testing.T) {
	v := newValues(t)
	none, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	blocked, err := filterpolicy.Parse("blocked:10")
	require.NoError(t, err)
	const n = 2000
	siftkv := func(p filterpolicy.Policy) func(string, Settings) (Store, error) {
		return func(dir string, s Settings) (Store, error) { return openSiftKVTree(dir, s, p, Tree{}) }
	}
	peb := func(p pebble.FilterPolicy) func(string, Settings) (Store, error) {
		return func(dir string, s Settings) (Store, error) { return openPebbleTree(dir, s, p, Tree{}) }
	}
	for _, tc := range []struct {
		name, compression string
		open              func(string, Settings) (Store, error)
	}{
		{"siftkv none", "snappy", siftkv(none)},
		{"siftkv blocked", "none", siftkv(blocked)},
		{"siftkv blocked", "zstd", siftkv(blocked)},
		{"pebble none", "snappy", peb(nil)},
		{"pebble bloom", "none", peb(bloom.FilterPolicy(10))},
		{"pebble bloom", "zstd", peb(bloom.FilterPolicy(10))},
	} {
		t.Run(tc.name+"/"+tc.compression, func(t *testing.T) {
			dir, with := t.TempDir(), settings
			with.Compression = tc.compression
			s, err := tc.open(dir, with)
			require.NoError(t, err)
			fill(t, s, v, n)
			require.NoError(t, s.Close())

			s, err = tc.open(dir, with)
			require.NoError(t, err, "a settled store is opened again")
			shape, err := s.Shape()
			require.NoError(t, err)
			require.True(t, shape.Settled(), "%+v", shape)
			require.EqualValues(t, n, shape.Total().Entries)
			require.Positive(t, shape.Total().Bytes)
			for _, kind := range Kinds {
				ask(t, s, v, Get, kind, n)
			}
			require.NoError(t, s.Close())
		})
	}
}

func TestSiftKVCountsByLevel(t *testing.T) {
	v := newValues(t)
	policy, err := filterpolicy.Parse("bloom:10")
	require.NoError(t, err)
	s, err := openSiftKVTree(t.TempDir(), settings, policy, Tree{})
	require.NoError(t, err)
	const n = 5000
	fill(t, s, v, n)

	existing := ask(t, s, v, Get, Existing, n)
	require.EqualValues(t, n, existing.Lookups)
	require.EqualValues(t, n, existing.Total.TruePositives)
	require.Zero(t, existing.Total.Negatives)
	require.EqualValues(t, n, existing.Total.Answered)
	require.EqualValues(t, n, existing.Total.BlocksFromCache+existing.Total.BlocksFromDisk)

	absent := ask(t, s, v, Get, Absent, n-1)
	require.EqualValues(t, n-1, absent.Lookups)
	require.Zero(t, absent.Total.TruePositives)
	require.Greater(t, int64(absent.Total.Negatives), int64(n*9/10))
	require.Zero(t, absent.Total.Answered)
	shape, err := s.Shape()
	require.NoError(t, err)
	require.InDelta(t, 10, shape.Total().BitsPerKey(), 1)
	_, err = s.NewReader(Iterator, Existing)
	require.ErrorContains(t, err, "no access")
	require.NoError(t, s.Close())
}

func TestPebbleGetSkipsLastLevelFiltersAndTheIteratorDoesNot(t *testing.T) {
	v := newValues(t)
	s, err := openPebbleTree(t.TempDir(), settings, bloom.FilterPolicy(10), Tree{})
	require.NoError(t, err)
	const n = 5000
	fill(t, s, v, n)
	for _, kind := range Kinds {
		c := ask(t, s, v, Get, kind, n-1)
		require.Zero(t, c.Total.FilterChecks, "Get, %s", kind)
		require.False(t, c.Total.IndexLookups.Known())
		require.Positive(t, c.Total.BlocksFromCache+c.Total.BlocksFromDisk)
	}
	existing := ask(t, s, v, Iterator, Existing, n)
	require.EqualValues(t, n, existing.Total.FilterChecks)
	require.EqualValues(t, n, existing.Total.TruePositives)
	absent := ask(t, s, v, Iterator, Absent, n-1)
	require.EqualValues(t, n-1, absent.Total.FilterChecks)
	require.Less(t, int64(absent.Total.FalsePositives), int64(n/20))
	require.Equal(t, absent.Total.FilterChecks, absent.Total.Negatives+absent.Total.FalsePositives)
	_, err = s.NewReader("telepathy", Absent)
	require.ErrorContains(t, err, "no access")
	require.NoError(t, s.Close())
}

func TestPebbleCountsBytesOfBothAccesses(t *testing.T) {
	v := newValues(t)
	cold := settings
	cold.CacheBytes = 64 << 10
	s, err := openPebbleTree(t.TempDir(), cold, nil, Tree{})
	require.NoError(t, err)
	fill(t, s, v, 5000)
	for _, access := range []Access{Get, Iterator} {
		c := ask(t, s, v, access, Existing, 5000)
		require.Positive(t, c.Total.BytesFromDisk, "%s reads from files when the cache is small", access)
	}
	require.NoError(t, s.Close())
}

func TestPebbleRemembersBackgroundErrors(t *testing.T) {
	var log pebbleLog
	require.NoError(t, log.failure())
	log.Infof("flushed %d", 3)
	require.NoError(t, log.failure())
	log.Errorf("disk %s", "full")
	log.Errorf("later")
	require.EqualError(t, log.failure(), "pebble: disk full")
}

func TestPebbleSettlesWhenEmpty(t *testing.T) {
	s, err := openPebbleTree(t.TempDir(), settings, pebble.NoFilterPolicy, Tree{})
	require.NoError(t, err)
	require.NoError(t, s.Settle(t.Context()))
	shape, err := s.Shape()
	require.NoError(t, err)
	require.Empty(t, shape.Levels)
	require.NoError(t, s.Close())
}

func TestNullAnswersByKind(t *testing.T) {
	v := newValues(t)
	s := NewNull(v)
	fill(t, s, v, 100)
	for _, kind := range Kinds {
		c := ask(t, s, v, Get, kind, 100)
		require.False(t, c.Lookups.Known())
		require.Equal(t, UnknownTally(), c.Total)
	}
	shape, err := s.Shape()
	require.NoError(t, err)
	require.True(t, shape.Settled())
	require.Zero(t, shape.Total().BitsPerKey())
	require.NoError(t, s.Close())
}

func TestCountsKeepTheUnknown(t *testing.T) {
	require.Equal(t, Count(5), Count(2).Plus(3))
	require.Equal(t, Count(2), Count(5).Minus(3))
	for _, c := range []Count{Unknown.Plus(1), Count(1).Plus(Unknown), Unknown.Minus(1), Count(1).Minus(Unknown)} {
		require.Equal(t, Unknown, c)
		require.False(t, c.Known())
	}
	data, err := json.Marshal([]Count{0, 7, Unknown})
	require.NoError(t, err)
	require.JSONEq(t, `[0, 7, null]`, string(data))
	var back []Count
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, []Count{0, 7, Unknown}, back)
	require.Error(t, json.Unmarshal([]byte(`["x"]`), &back))
}

func TestTalliesAddAndSubtractEveryCount(t *testing.T) {
	n := Count(-1)
	next := func(x, _ Count) Count {
		n++
		return x + n
	}
	b := combine(Tally{}, Tally{}, next)
	a := combine(b, Tally{}, func(x, _ Count) Count { return x + 100 })
	seen := map[string]bool{}
	Minus(a, b).EachPair(Plus(a, b), func(name string, minus, plus Count) {
		require.False(t, seen[name], "%s twice", name)
		seen[name] = true
		require.Equal(t, Count(100), minus, name)
		require.Equal(t, Count(100+2*(len(seen)-1)), plus, name)
	})
	require.Len(t, seen, 17)

	sum := Plus(Counters{Lookups: 1, Total: a, Levels: []Tally{a, b}},
		Counters{Lookups: 2, Total: b, Levels: []Tally{b, b}})
	require.Equal(t, Count(3), sum.Lookups)
	require.Equal(t, []Tally{Plus(a, b), Plus(b, b)}, sum.Levels)
	require.Equal(t, Count(3), Plus[Count](1, 2))
}

func TestWhatIsNoCountIsNotAdded(t *testing.T) {
	require.PanicsWithError(t, "combine counts: string has a value of type string", func() { Plus("a", "b") })
	require.PanicsWithError(t, "combine counts: []float64 has a value of type float64",
		func() { Minus([]float64{2}, []float64{1}) })
}

func TestShapeAddsLevels(t *testing.T) {
	s := Shape{Levels: []LevelShape{{0, 1, 1, 10, 100, 50, 1}, {6, 1, 2, 20, 300, 450, 2}}}
	require.Equal(t, LevelShape{-1, 2, 3, 30, 400, 500, 3}, s.Total())
	require.InDelta(t, 10, s.Total().BitsPerKey(), 1e-9)
	require.False(t, s.Settled())
	require.False(t, Shape{Levels: s.Levels[:1]}.Settled(), "files of level 0 overlap")
	require.True(t, Shape{Levels: s.Levels[1:]}.Settled())
}
