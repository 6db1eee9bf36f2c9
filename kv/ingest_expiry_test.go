package kv

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// Values that expire are taken in, and end at their moment as those of SetTTL do; the store's manifest says that it
// has some, before and after it is opened again.
func TestIngestOfExpiringValues(t *testing.T) {
	clock := &storetest.Clock{}
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := sstable.NewWriter(f, nil)
	require.NoError(t, w.SetUntil([]byte("a"), []byte("ended long ago"), time.Unix(-1, 0)))
	require.NoError(t, w.SetUntil([]byte("b"), []byte("1"), clock.Time().Add(time.Microsecond)))
	require.NoError(t, w.SetUntil([]byte("c"), nil, clock.Time().Add(time.Hour)))
	require.NoError(t, w.Set([]byte("d"), []byte("stays")))
	info, err := w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.EqualValues(t, 3, info.Expiring)

	opts := &Options{Clock: clock.Time}
	db := openDir(t, dir, opts)
	for _, k := range []string{"a", "b"} {
		set(t, db, k, "old")
	}
	features := func() manifest.Features {
		db.mu.Lock()
		defer db.mu.Unlock()
		return db.features
	}
	require.Zero(t, features())
	require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
	for range 2 {
		require.Equal(t, manifest.FeatureTTL, features())
		requireContents(t, storetest.Model{"b": "1", "c": "", "d": "stays"}, db)
		clock.Advance(time.Microsecond)
		requireContents(t, storetest.Model{"c": "", "d": "stays"}, db)
		clock.Advance(-time.Microsecond)
		require.NoError(t, db.Close())
		db = openDir(t, dir, opts)
	}
	clock.Advance(time.Hour)
	requireContents(t, storetest.Model{"d": "stays"}, db)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.EqualValues(t, 1, db.Metrics().Levels[lastLevel].Entries)
	require.NoError(t, db.Close())
}

// The limit of a value does not count its moment of expiry: a value of MaxValueSize may expire. Such a value takes a
// gigabyte, so that only a long test has one.
func TestIngestCountsNoMomentOfExpiry(t *testing.T) {
	size := 1000
	if scale.Long() {
		size = MaxValueSize
	}
	path := filepath.Join(t.TempDir(), "file")
	f, err := vfs.OS.Create(path)
	require.NoError(t, err)
	w := sstable.NewWriter(f, nil)
	require.NoError(t, w.SetUntil([]byte("k"), make([]byte, size), time.Now().Add(time.Hour)))
	_, err = w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	db := openMem(t, nil)
	in := newIngest(t.Context(), db, &IngestOptions{})
	require.NoError(t, in.begin())
	defer in.end()
	sizes := map[string]int{}
	check := in.files.CheckEntry
	in.files.CheckEntry = func(key, value []byte) error {
		sizes[string(key)] = len(value)
		return check(key, value)
	}
	require.NoError(t, in.run([]string{path}))
	require.Equal(t, map[string]int{"k": size}, sizes)
	v, err := db.Get([]byte("k"))
	require.NoError(t, err)
	require.Len(t, v, size)
}
