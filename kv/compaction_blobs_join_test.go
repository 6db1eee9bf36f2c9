package kv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// manySmall is how many small blob files the background joins at once, and smallBlob the part of the size of new blob
// files below which a file is small: see internal/compaction.
const manySmall, smallBlob = 64, 8

// openSmallBlobs returns a store to which n blob files of one record were written, every other by SetReader, and one
// that is not small, whose name is returned.
func openSmallBlobs(t *testing.T, n int, o *Options) (db *DB, m storetest.Model, large string) {
	o.SeparateFrom, o.harness.MinStreamed, o.harness.BlobSize = 100, 400, 8000
	if o.L0CompactionThreshold == 0 {
		o.L0CompactionThreshold = 2 * n
	}
	o.L0SlowdownThreshold, o.L0StopThreshold = 2*n+1, 2*n+2
	db, err := Open("db", o)
	require.NoError(t, err)
	m = storetest.Model{}
	for i := range n {
		k := fmt.Sprintf("key%03d", i*37%n)
		if i%2 == 0 {
			m[k] = strings.Repeat(k, 80)
			setReader(t, db, k, m[k], NoSync)
			continue
		}
		m[k] = strings.Repeat(k, 50)
		require.NoError(t, db.Set([]byte(k), []byte(m[k]), NoSync))
		require.NoError(t, db.Flush(t.Context()))
	}
	m["large"] = strings.Repeat("l", 5000)
	setReader(t, db, "large", m["large"], NoSync)
	require.NoError(t, db.Flush(t.Context()))
	return db, m, slices.Max(blobsOnDisk(t, o.harness.FS, "db"))
}

// Compact joins blob files of few records, those of SetReader too. The next Compact finds nothing to join.
func TestCompactJoinsSmallBlobFiles(t *testing.T) {
	t.Parallel()
	for _, rangeSize := range []int64{0, 1000} {
		o := &Options{harness: harness.Harness{FS: vfs.NewMem(), RangeSize: rangeSize}}
		const n = manySmall - 4 // too few for the background
		db, m, large := openSmallBlobs(t, n, o)
		require.Greater(t, db.Metrics().Blobs.Files, n)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		requireContents(t, m, db)
		require.LessOrEqual(t, requireBlobs(t, db), 5, "24,000 bytes in files of 8,000, and the large one")
		require.Contains(t, blobsOnDisk(t, o.harness.FS, "db"), large, "it is not small")
		files, relocated := blobsOnDisk(t, o.harness.FS, "db"), db.Metrics().Blobs.Relocated
		require.NotZero(t, relocated)
		for range 3 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			require.Equal(t, files, blobsOnDisk(t, o.harness.FS, "db"))
			require.Equal(t, relocated, db.Metrics().Blobs.Relocated)
		}
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	}
}

// A store whose blob files are small joins them in the background, and then rests.
func TestSmallBlobFilesAreJoinedInTheBackground(t *testing.T) {
	t.Parallel()
	for _, kind := range []CompactionStyle{Leveled, Tiered} {
		o := &Options{harness: harness.Harness{FS: vfs.NewMem()}, Compaction: kind, L0CompactionThreshold: 4}
		const n = 300
		db, m, large := openSmallBlobs(t, n, o)
		require.Less(t, requireBlobs(t, db), n)
		requireJoined(t, db)
		require.Contains(t, blobsOnDisk(t, o.harness.FS, "db"), large, "it is not small")
		copied := db.Metrics().Blobs.Relocated
		require.NotZero(t, copied)
		require.Less(t, copied, uint64(2*n*480))
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	}
}

// requireJoined requires that a store at rest has no run below level 0 with manySmall small blob files, if its files
// are small on average.
func requireJoined(t *testing.T, db *DB) {
	t.Helper()
	db.mu.Lock()
	defer db.mu.Unlock()
	v := db.current
	totals, small := v.BlobTotals(), uint64(db.opts.harness.BlobSize/smallBlob)
	if totals.RecordBytes/uint64(totals.Files) >= small {
		return
	}
	for _, r := range v.Below() {
		live := map[uint64]uint64{}
		for _, table := range r.Tables() {
			for _, ref := range table.Blobs {
				live[ref.Num] += ref.Bytes
			}
		}
		n := 0
		for num, bytes := range live {
			if b := v.Blob(num); bytes == b.LiveBytes && bytes+b.Garbage() < small {
				n++
			}
		}
		require.Less(t, n, manySmall, "level %d", r.Level)
	}
}

// Small blob files are joined in a run that is not the oldest, too.
func TestSmallBlobFilesOfNewerRunsAreJoined(t *testing.T) {
	t.Parallel()
	const n = manySmall + 4
	for _, kind := range []CompactionStyle{LazyLeveled, Tiered} {
		o := &Options{harness: harness.Harness{FS: vfs.NewMem(), BlobSize: 8000}, Compaction: kind, SeparateFrom: 100,
			L0CompactionThreshold: n,
			L0SlowdownThreshold:   2 * n, L0StopThreshold: 2*n + 1, Compression: sstable.NoCompression}
		db, m := openDir(t, "db", o), storetest.Model{}
		for i := range 2000 {
			k := fmt.Sprintf("key%05d", i)
			m[k] = strings.Repeat("v", 90)
			set(t, db, k, m[k])
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil)) // the oldest run, without blob files
		for i := range n {
			k := fmt.Sprintf("key%05d", i*2000/n)
			m[k] = strings.Repeat(k, 40)
			set(t, db, k, m[k])
			require.NoError(t, db.Flush(t.Context()))
		}
		require.LessOrEqual(t, requireBlobs(t, db), 5, "%v: 21,760 bytes in files of 8,000", kind)
		db.mu.Lock()
		require.Len(t, db.current.Below(), 2)
		db.mu.Unlock()
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	}
}
