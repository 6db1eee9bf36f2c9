package kv

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// settleStore returns when there is nothing left to flush or compact.
func settleStore(tb testing.TB, db *DB) {
	tb.Helper()
	require.NoError(tb, db.Flush(tb.Context()))
	db.settle()
}

// tieredOptions make flushes of a few keys a deep tree.
func tieredOptions(kind CompactionStyle) *Options {
	return &Options{
		Compaction: kind, RunsPerLevel: 3, L0CompactionThreshold: 3, TargetFileSize: 16 << 10, BaseLevelSize: 16 << 10,
		BlockSize: 512, harness: harness.Harness{FS: vfs.NewMem()},
	}
}

// fill writes n batches of random keys out of a number, each to a file of its own.
func fill(t *testing.T, db *DB, want storetest.Model, rng *rand.Rand, n, keys int) {
	t.Helper()
	for range n {
		for range 40 {
			k := fmt.Sprintf("key%06d", rng.IntN(keys))
			want[k] = string(randomBytes(rng, 30))
			storetest.Fine(t, db.Set([]byte(k), []byte(want[k]), Async))
		}
		storetest.Fine(t, db.Flush(t.Context()))
	}
}

func allKinds(t *testing.T, f func(t *testing.T, kind CompactionStyle)) {
	for kind := range numCompactions {
		t.Run(kind.String(), func(t *testing.T) { f(t, kind) })
	}
}

// A tiered tree has several runs in a level; they are what they were after an open, and
// Compact makes one of all.
func TestRunsOfAStoreSurviveReopening(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		o := tieredOptions(kind)
		db := openDir(t, "db", o)
		want := storetest.Model{}
		rng := rand.New(rand.NewPCG(1, 1))
		m, most := db.Metrics(), 0
		for round := 0; round < 10 || kind != Leveled && most < 2; round++ {
			require.Less(t, round, 50, "no level ever has several runs")
			fill(t, db, want, rng, 3, 1_000_000)
			settleStore(t, db)
			m, most = db.Metrics(), 0
			for n, l := range m.Levels {
				require.Less(t, l.Runs, max(db.opts.compaction().RunsAllowed(n), 2), "level %d", n)
				if n > 0 {
					most = max(most, l.Runs)
				}
			}
			require.True(t, kind != Leveled || most < 2)
		}
		if kind == LazyLeveled {
			require.Equal(t, 1, m.Levels[lastLevel].Runs)
		}
		requireContents(t, want, db)
		for k, v := range want {
			got, err := db.Get([]byte(k))
			require.NoError(t, err)
			require.Equal(t, v, string(got))
		}
		checkIdentities(t, db.Metrics())
		require.NoError(t, db.Checkpoint(t.Context(), "copy"))
		require.NoError(t, db.Close())
		for _, dir := range []string{"db", "copy"} {
			o.ReadOnly = true
			db = openDir(t, dir, o)
			for n, l := range db.Metrics().Levels {
				require.Equal(t, m.Levels[n].Runs, l.Runs)
				require.Equal(t, m.Levels[n].Files, l.Files)
			}
			requireContents(t, want, db)
			require.NoError(t, db.Close())
		}
		o.ReadOnly = false
		db = openDir(t, "db", o)
		defer func() { require.NoError(t, db.Close()) }()
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		l := db.Metrics().Levels[lastLevel]
		require.Equal(t, 1, l.Runs)
		require.EqualValues(t, len(want), l.Entries)
		requireContents(t, want, db)
	})
}

// Overwriting the same keys over and over takes no more space than a few times theirs.
func TestSpaceIsBounded(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := openDir(t, "db", tieredOptions(kind))
		defer func() { require.NoError(t, db.Close()) }()
		want := storetest.Model{}
		fill(t, db, want, rand.New(rand.NewPCG(2, 2)), 60, 200)
		settleStore(t, db)
		m := db.Metrics()
		all := uint64(0)
		for n, l := range m.Levels {
			if n > 0 {
				all += l.Entries
			}
		}
		bound := len(want) * (db.opts.RunsPerLevel + 2) // one for differences of size between entries and bytes
		if kind == Leveled {
			bound = 2 * len(want)
		}
		require.LessOrEqual(t, all, uint64(bound), "%+v", m.Levels)
		requireContents(t, want, db)
	})
}

// Keys that come in order are never rewritten: runs that share no keys are one run
// without more ado. (A level 0 that is far behind is merged in its place first.)
func TestRunsWithoutCommonKeysMove(t *testing.T) {
	db := openDir(t, "db", tieredOptions(Tiered))
	defer func() { require.NoError(t, db.Close()) }()
	for i := range 60 {
		set(t, db, fmt.Sprintf("key%06d", i), "v")
		settleStore(t, db)
	}
	m := db.Metrics()
	require.Zero(t, m.Compactions)
	require.Greater(t, m.Moves, uint64(20))
	require.Equal(t, 60, m.Levels[1].Files+m.Levels[2].Files+m.Levels[3].Files+m.Levels[4].Files+m.Levels[0].Files)
}

// A store goes from every kind of compaction to every other.
func TestChangingTheKindOfCompaction(t *testing.T) {
	t.Parallel()
	o := tieredOptions(Leveled)
	want := storetest.Model{}
	rng := rand.New(rand.NewPCG(3, 3))
	for i, kind := range []CompactionStyle{Tiered, Leveled, LazyLeveled, Tiered, LazyLeveled, Leveled} {
		o.Compaction = kind
		o.MaxConcurrentCompactions = 1 + i%2
		db := openDir(t, "db", o)
		fill(t, db, want, rng, 17, 3000)
		k := fmt.Sprintf("key%06d", 100*i)
		require.NoError(t, db.DeleteRange([]byte(k), []byte(k+"~"), Async))
		want.DeleteRange([]byte(k), []byte(k+"~"))
		settleStore(t, db)
		for n := 1; n < NumLevels; n++ {
			runs := db.Metrics().Levels[n].Runs
			if kind == Leveled || kind == LazyLeveled && n == lastLevel {
				require.LessOrEqual(t, runs, 1)
			}
			require.Less(t, runs, 3)
		}
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// An explanation lists the newest run first, and stops at it.
func TestExplainAsksRunsNewestFirst(t *testing.T) {
	db := openDir(t, "db", tieredOptions(Tiered))
	defer func() { require.NoError(t, db.Close()) }()
	for i := range 8 { // two runs of three flushes in level 1, and two files in level 0
		for _, k := range []string{"a", fmt.Sprintf("k%d", i), "z"} {
			set(t, db, k, strconv.Itoa(i))
		}
		require.NoError(t, db.Flush(t.Context()))
		settleStore(t, db)
	}
	require.Equal(t, 2, db.Metrics().Levels[1].Runs)
	for key, want := range map[string]struct{ levels, value string }{
		"k7": {"[0]", "7"}, "k5": {"[0 0 1]", "5"}, "k1": {"[0 0 1 1]", "1"}, "a": {"[0]", "7"},
	} {
		e, err := db.Explain([]byte(key))
		require.NoError(t, err)
		var levels []int
		for _, s := range e.Steps {
			if s.Level >= 0 {
				levels = append(levels, s.Level)
			}
		}
		require.Equal(t, want.levels, fmt.Sprint(levels), "%s: %s", key, e)
		v, err := db.Get([]byte(key))
		require.NoError(t, err)
		require.Equal(t, want.value, string(v))
	}
}

// A budget holds for the filters of all runs together, whichever came first.
func TestFilterBudgetOfRuns(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		o := tieredOptions(kind)
		o.Filter = mustParse("bloom:10")
		o.FilterBudget = 2000
		db := openDir(t, "db", o)
		defer func() { require.NoError(t, db.Close()) }()
		want := storetest.Model{}
		fill(t, db, want, rand.New(rand.NewPCG(4, 4)), 40, 1_000_000)
		settleStore(t, db)
		used := int64(0)
		for n, l := range db.Metrics().Levels {
			if n > 0 {
				used += l.FilterBytes
			}
		}
		require.Less(t, used, 2*o.FilterBudget)
		require.Greater(t, used, o.FilterBudget/4)
	})
}

// Tombstones that outweigh what they are in go down at once, with what they delete.
func TestRunsOfTombstonesAreCompacted(t *testing.T) {
	t.Parallel()
	for _, kind := range []CompactionStyle{Tiered, LazyLeveled} {
		o := tieredOptions(kind)
		o.MaxConcurrentCompactions = 1
		db := openDir(t, "db", o)
		defer func() { require.NoError(t, db.Close()) }()
		want := storetest.Model{}
		// Each flush waits for the compactions of the one before, so that every compaction of level 0 takes three
		// files and nothing is left there: tombstones that go down in one run with values need not outweigh them.
		rng := rand.New(rand.NewPCG(5, 5))
		for range 30 {
			fill(t, db, want, rng, 1, 1000)
			settleStore(t, db)
		}
		require.Zero(t, db.Metrics().Levels[0].Files)
		snap := db.NewSnapshot()
		for range 3 {
			require.NoError(t, db.DeleteRange([]byte("key"), []byte("kez"), Async))
			require.NoError(t, db.Flush(t.Context()))
		}
		settleStore(t, db)
		requireContents(t, want, snap)
		require.NoError(t, snap.Close())
		settleStore(t, db)
		requireContents(t, storetest.Model{}, db)
		for n := range db.Metrics().Levels {
			require.Zero(t, db.Metrics().Levels[n].Entries, "%v: level %d", kind, n)
		}
	}
}

// Levels are compressed as they are told to be, also where a file could only move.
func TestLevelCompression(t *testing.T) {
	o := tieredOptions(Leveled)
	o.LevelCompression = [NumLevels]sstable.Compression{0: sstable.NoCompression, lastLevel: sstable.Zstd}
	db := openDir(t, "db", o)
	defer func() { require.NoError(t, db.Close()) }()
	compressions := func() map[int]sstable.Compression {
		m := map[int]sstable.Compression{}
		db.installed().All(func(n int, tb *version.Table) {
			r, err := tb.Open(&db.tables)
			require.NoError(t, err)
			m[n] = r.Properties().Compression
		})
		return m
	}
	value := string(bytes.Repeat([]byte("x"), 2000))
	set(t, db, "a", value)
	require.NoError(t, db.Flush(t.Context()))
	require.Equal(t, map[int]sstable.Compression{0: sstable.NoCompression}, compressions())
	set(t, db, "b", value)
	require.NoError(t, db.Flush(t.Context()))
	set(t, db, "c", value)
	settleStore(t, db)
	require.Equal(t, map[int]sstable.Compression{lastLevel: sstable.Zstd}, compressions())
	require.Zero(t, db.Metrics().Moves)
}

func TestCompactionNames(t *testing.T) {
	for c := range numCompactions {
		got, err := ParseCompactionStyle(c.String())
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
	_, err := ParseCompactionStyle("universal")
	require.ErrorIs(t, err, ErrInvalidOptions)
	require.ErrorContains(t, err, "leveled, tiered, lazy-leveled")
	require.Equal(t, "Compaction(9)", CompactionStyle(9).String())
}
