package kv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// openSmallBlobs returns a store to which n blob files of one record were written, every other by SetReader, and one
// that is not small, whose name is returned.
func openSmallBlobs(t *testing.T, n int, o *Options) (db *DB, m model, large string) {
	o.SeparateFrom, o.leastStreamed, o.blobSize = 100, 400, 8000
	if o.L0CompactionThreshold == 0 {
		o.L0CompactionThreshold = 2 * n
	}
	o.L0SlowdownThreshold, o.L0StopThreshold = 2*n+1, 2*n+2
	db, err := Open("db", o)
	require.NoError(t, err)
	m = model{}
	for i := range n {
		k := fmt.Sprintf("key%03d", i*37%n)
		if i%2 == 0 {
			m[k] = strings.Repeat(k, 80)
			setReader(t, db, k, m[k], NoSync)
			continue
		}
		m[k] = strings.Repeat(k, 50)
		require.NoError(t, db.Set([]byte(k), []byte(m[k]), NoSync))
		require.NoError(t, db.Flush())
	}
	m["large"] = strings.Repeat("l", 5000)
	setReader(t, db, "large", m["large"], NoSync)
	require.NoError(t, db.Flush())
	return db, m, slices.Max(blobsOnDisk(t, o.fs, "db"))
}

// Compact joins blob files of few records, those of SetReader too. The next Compact finds nothing to join.
func TestCompactJoinsSmallBlobFiles(t *testing.T) {
	t.Parallel()
	for _, rangeSize := range []int64{0, 1000} {
		o := &Options{fs: vfs.NewMem(), rangeSize: rangeSize}
		const n = manyJoined - 4 // too few for the background
		db, m, large := openSmallBlobs(t, n, o)
		require.Greater(t, db.Metrics().Blobs.Files, n)
		require.NoError(t, db.Compact(nil, nil))
		requireContents(t, m, db)
		require.LessOrEqual(t, requireBlobs(t, db), 5, "24,000 bytes in files of 8,000, and the large one")
		require.Contains(t, blobsOnDisk(t, o.fs, "db"), large, "it is not small")
		files, relocated := blobsOnDisk(t, o.fs, "db"), db.Metrics().Blobs.Relocated
		require.NotZero(t, relocated)
		for range 3 {
			require.NoError(t, db.Compact(nil, nil))
			require.Equal(t, files, blobsOnDisk(t, o.fs, "db"))
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
		o := &Options{fs: vfs.NewMem(), Compaction: kind, L0CompactionThreshold: 4}
		const n = 300
		db, m, large := openSmallBlobs(t, n, o)
		require.Less(t, requireBlobs(t, db), n/2)
		require.Contains(t, blobsOnDisk(t, o.fs, "db"), large, "it is not small")
		copied := db.Metrics().Blobs.Relocated
		require.NotZero(t, copied)
		require.Less(t, copied, uint64(2*n*480))
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	}
}

// What a picker of the background leaves alone: few files, and one that outweighs the others.
func TestFewSmallBlobFilesStay(t *testing.T) {
	t.Parallel()
	o := &Options{fs: vfs.NewMem(), L0CompactionThreshold: 4}
	db, _, _ := openSmallBlobs(t, manyJoined/2, o)
	settleStore(t, db)
	db.mu.Lock()
	require.Len(t, db.current.Levels[lastLevel].Runs, 1)
	require.Nil(t, db.pickSmall(db.current))
	db.mu.Unlock()
	require.NoError(t, db.Close())
}
