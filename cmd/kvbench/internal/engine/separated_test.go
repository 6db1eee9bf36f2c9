package engine

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// A twin is an engine with separated large values, and its like without.
type twin struct {
	separated, inline string
	files             string // pattern of the files that separated values are in
}

// twins are those of this program.
func twins() []twin {
	all := []twin{{SiftKVSeparatedName, "siftkv", "*.blob"}, {SiftKVTightName, "siftkv", "*.blob"},
		{SiftKVCommitName, "siftkv", "*.blob"},
		{PebbleSeparatedName, "pebble", "*.blob"}, {BadgerLogName, "badger", "*.vlog"}}
	if HasRocksDB() {
		all = append(all, twin{RocksDBBlobsName, RocksDBName, "*.blob"})
	}
	return all
}

// largeSettings are those of the tests with values separated from a size on.
func largeSettings(from int) Settings {
	s := settingsOf("none")
	s.SeparateFrom, s.Inline, s.BatchKeys = from, true, 4
	return s
}

// sizeOfFiles adds up the bytes of files in a directory.
func sizeOfFiles(t *testing.T, dir, pattern string) int64 {
	t.Helper()
	var sum int64
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ok, _ := filepath.Match(pattern, d.Name()); ok && err == nil {
			info, err := d.Info()
			require.NoError(t, err)
			sum += info.Size()
		}
		return err
	}))
	return sum
}

// fillLarge is fill with values of 8 KiB that nothing compresses.
func fillLarge(t *testing.T, s Store, n int) keys.Values {
	t.Helper()
	v, err := keys.NewValues(8<<10, 7)
	require.NoError(t, err)
	v = v.Random()
	fill(t, s, v, n)
	return v
}

// TestLargeValuesAreSeparated from the requested size on, and not in the twin that separates none.
func TestLargeValuesAreSeparated(t *testing.T) {
	const n = 200
	for _, w := range twins() {
		for _, c := range []struct {
			engine    string
			from      int
			separated bool
		}{{w.separated, 8 << 10, true}, {w.separated, 16 << 10, false}, {w.separated, 0, true},
			{w.inline, 1 << 10, false}} {
			dir := filepath.Join(t.TempDir(), "store")
			store, err := Open(c.engine, dir, largeSettings(c.from))
			require.NoError(t, err)
			v := fillLarge(t, store, n)
			if c.separated {
				ask(t, store, v, Get, Existing, n)
				scanKeysAndValues(t, store, v, n)
			}
			require.NoError(t, store.Close())
			if got := sizeOfFiles(t, dir, w.files); c.separated {
				require.GreaterOrEqual(t, got, int64(n*8<<10), "%s from %d", c.engine, c.from)
			} else {
				require.Less(t, got, int64(1<<20), "%s from %d", c.engine, c.from)
			}
		}
	}
}

// TestLargeValuesOfSiftKVLieWhereTheyDoByDefault unless the settings say that they are inline.
func TestLargeValuesOfSiftKVLieWhereTheyDoByDefault(t *testing.T) {
	const n = 200
	sizes := map[bool]int64{}
	for _, inline := range []bool{false, true} {
		dir, s := filepath.Join(t.TempDir(), "store"), largeSettings(0)
		s.Inline = inline
		store, err := Open("siftkv", dir, s)
		require.NoError(t, err)
		ask(t, store, fillLarge(t, store, n), Get, Existing, n)
		require.NoError(t, store.Close())
		sizes[inline] = sizeOfFiles(t, dir, "*.blob")
	}
	require.GreaterOrEqual(t, sizes[false], int64(n*8<<10))
	require.Zero(t, sizes[true])
}

// scanKeysAndValues scans a store that fillLarge has filled, with values and without.
func scanKeysAndValues(t *testing.T, s Live, v keys.Values, n int) {
	t.Helper()
	var want []string
	require.NoError(t, s.Scan(nil, 0, func(k, value []byte) {
		require.Equal(t, v.Append(nil, k), value)
		want = append(want, string(k))
	}))
	require.Len(t, want, n)
	scanner, ok := s.(KeyScanner)
	if !ok {
		return
	}
	var got []string
	require.NoError(t, scanner.ScanKeys(nil, 0, func(k []byte) { got = append(got, string(k)) }))
	require.Equal(t, want, got)
	got = nil
	require.NoError(t, scanner.ScanKeys(key(2*n-6), 2, func(k []byte) { got = append(got, string(k)) }))
	require.Equal(t, want[n-3:n-1], got)
}

// TestTheValueLogIsCollected overwrites everything, again and again, and has the space back
// when the store is settled: with Badger's log all of it would be there.
func TestTheValueLogIsCollected(t *testing.T) {
	const n, rounds, size = 1000, 16, 2 << 10
	half, err := keys.NewValues(size, 7)
	require.NoError(t, err)
	v, dir := half.Random(), filepath.Join(t.TempDir(), "store")
	store, err := Open(BadgerLogName, dir, largeSettings(size))
	require.NoError(t, err)
	for range rounds {
		fill(t, store, v, n)
	}
	ask(t, store, v, Get, Existing, n)
	require.NoError(t, store.Close())
	require.Less(t, sizeOfFiles(t, dir, "*.vlog"), int64(rounds/2*n*size))
}

func TestSpaceOfLargeValuesHasBounds(t *testing.T) {
	for _, space := range []float64{1.09, 101, -1} {
		s := settings
		s.BlobSpace = space
		require.ErrorIs(t, s.Check("--"), bench.ErrUsage)
		require.ErrorContains(t, s.Check("--"), "--blob-space")
	}
	s := settings
	s.SeparateFrom = -1
	require.ErrorContains(t, s.Check("--"), "--separate-from -1")
	s.SeparateFrom, s.BlobSpace = 1, 1.1
	require.NoError(t, s.Check("--"))
	require.InDelta(t, 0.0909, s.garbageShare(), 1e-4)
	require.InDelta(t, 1/3., new(find(SiftKVSeparatedName).settings(Settings{})).garbageShare(), 1e-9)
	require.InDelta(t, 0.23, new(find(SiftKVTightName).settings(s)).garbageShare(), 0.01)
}
