package engine

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/sstable"
)

// TestTheOracleNeverErrs asks every file of a tree of several levels for every key,
// and the store for those that are there and those between them: as it grew, opened
// again, compacted into one level, and opened once more.
func TestTheOracleNeverErrs(t *testing.T) {
	v := newValues(t)
	dir := filepath.Join(t.TempDir(), "store")
	variant, err := NewVariant("siftkv", OracleFilter, v)
	require.NoError(t, err)
	tree := Tree{FileBytes: 16 << 10, BaseLevelBytes: 16 << 10}
	const n = 4000
	open := func() *siftkvStore {
		s, err := variant.Open(dir, settings, tree)
		require.NoError(t, err)
		return s.(*siftkvStore)
	}
	s := open()
	fillLevels(t, s, v, n)
	for _, step := range []string{"grown", "opened again", "settled", "settled and opened again"} {
		switch step {
		case "settled":
			require.NoError(t, s.Settle(t.Context()))
		case "opened again", "settled and opened again":
			require.NoError(t, s.Close())
			s = open()
		}
		shape, err := s.Shape()
		require.NoError(t, err)
		require.Equal(t, step[0] == 's', shape.Settled(), step)
		require.Less(t, shape.Total().BitsPerKey(), 1.0, "its keys are not counted")

		existing := ask(t, s, v, Get, Existing, n).Total
		require.EqualValues(t, n, existing.TruePositives, step)
		require.Zero(t, existing.FalsePositives, step)
		require.Zero(t, existing.Unfiltered, "%s: every file has its oracle", step)
		absent := ask(t, s, v, Get, Absent, n-1).Total
		require.Zero(t, absent.FalsePositives, step)
		require.Zero(t, absent.Unfiltered, step)
		require.Equal(t, absent.FilterChecks, absent.Negatives, step)
		require.Greater(t, absent.Negatives, Count(n/2), step)
		require.Zero(t, absent.BlocksFromCache+absent.BlocksFromDisk, step)
		require.GreaterOrEqual(t, askEveryFile(t, dir, n), shape.Total().Files, step)
	}
	require.NoError(t, s.Close())
}

// askEveryFile holds the filter of each file in a directory against its keys, and
// returns how many files that were.
func askEveryFile(t *testing.T, dir string, n int) (asked int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	for _, path := range paths {
		r, err := sstable.Open(path, &sstable.ReaderOptions{Filter: newOracle(dir)})
		if errors.Is(err, fs.ErrNotExist) {
			continue // compacted away, and removed in the background
		}
		require.NoError(t, err)
		asked++
		require.NoError(t, r.FilterError())
		has := map[string]bool{}
		it := r.NewIter(sstable.IterOptions{})
		for ok := it.First(); ok; ok = it.Next() {
			has[string(it.Key().User)] = true
		}
		require.NoError(t, it.Error())
		for i := range 2 * n {
			k := key(i)
			if admitted := r.AskFilter(k, filterpolicy.Hash(k)) != sstable.Negative; admitted != has[string(k)] {
				t.Fatalf("%s: filter of %s says %t", path, k, admitted)
			}
		}
		require.NoError(t, r.Close())
	}
	return asked
}

func TestTheOracleInPebble(t *testing.T) {
	v := newValues(t)
	variant, err := NewVariant("pebble-iterator", OracleFilter, v)
	require.NoError(t, err)
	s, err := variant.Open(t.TempDir(), settings, Tree{})
	require.NoError(t, err)
	fill(t, s, v, 3000)
	require.EqualValues(t, 3000, ask(t, s, v, Iterator, Existing, 3000).Total.TruePositives)
	absent := ask(t, s, v, Iterator, Absent, 2999).Total
	require.Zero(t, absent.FalsePositives)
	require.EqualValues(t, 2999, absent.Negatives)
	require.NoError(t, s.Close())
	for _, name := range []string{"null", "badger", "goleveldb", "bbolt"} {
		_, err := NewVariant(name, OracleFilter, v)
		require.ErrorIs(t, err, ErrUnsupported, name)
	}
}
