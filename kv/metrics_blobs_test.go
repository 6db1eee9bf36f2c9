package kv

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/metrics"
)

// requireBlobMetrics requires that a store in which nothing happens has the figures that its tables and its
// directory add up to, and returns them.
func requireBlobMetrics(t *testing.T, db *DB) metrics.Blobs {
	t.Helper()
	requireBlobs(t, db)
	m := db.Metrics()
	b := m.Blobs
	want := metrics.Blobs{Written: b.Written, Committed: b.Committed, Relocated: b.Relocated,
		GCs: b.GCs, Reads: b.Reads, Read: b.Read, CacheHits: b.CacheHits}
	levels := [NumLevels]uint64{}
	db.installed().All(func(level int, table *version.Table) {
		for _, r := range table.Blobs {
			want.LiveRecords += r.Records
			want.LiveBytes += r.Bytes
			levels[level] += r.Bytes
			if level < lastLevel {
				want.HiddenBytes += r.Bytes
			}
		}
	})
	names, err := db.fs.List(db.dir)
	require.NoError(t, err)
	for _, name := range names {
		kind, num := manifest.ParseFileName(name)
		if kind != manifest.FileBlob {
			continue
		}
		want.Files++
		want.Bytes += int64(len(readAll(t, db.fs, manifest.Path(db.dir, manifest.FileBlob, num))))
		want.Records += db.installed().Blob(num).Records
	}
	want.Garbage = uint64(want.Bytes) - want.LiveBytes - uint64(want.Files)*metrics.BlobOverhead
	require.Equal(t, want, b)
	for n := range levels {
		require.Equal(t, levels[n], m.Levels[n].BlobBytes, "level %d", n)
	}
	require.LessOrEqual(t, b.Written+b.Relocated, b.Committed+m.FlushBytes+m.CompactionWrittenBytes)
	return b
}

// What the metrics have of blob files is what the tables refer to, and what lies in the directory; written is
// what events said.
func TestBlobMetricsAddUp(t *testing.T) {
	clock := &storetest.Clock{}
	var mu sync.Mutex // Compact may return, and begin to merge, before Flushed is called
	var events metrics.Blobs
	fsys := vfs.NewMem()
	o := &Options{harness: harness.Harness{FS: fsys, BlobSize: 10 << 10}, SeparateFrom: 100, Clock: clock.Time,
		L0CompactionThreshold: 3,
		Events: Events{
			Flushed: func(i FlushInfo) {
				require.LessOrEqual(t, i.BlobBytes, i.Bytes)
				mu.Lock()
				defer mu.Unlock()
				events.Files += i.BlobFiles
				events.Written += uint64(i.BlobBytes)
			},
			Compacted: func(i CompactionInfo) {
				require.LessOrEqual(t, i.RelocatedBytes, i.BlobBytes)
				require.LessOrEqual(t, i.BlobBytes, i.OutputBytes)
				mu.Lock()
				defer mu.Unlock()
				events.Files += i.BlobFiles
				events.Written += uint64(i.BlobBytes - i.RelocatedBytes)
				events.Relocated += uint64(i.RelocatedBytes)
			},
		}}
	db, err := Open("db", o)
	require.NoError(t, err)
	require.Zero(t, requireBlobMetrics(t, db))
	require.Zero(t, db.Metrics().Blobs.SpaceAmplification())
	rng := rand.New(rand.NewPCG(1, 17))
	garbage := uint64(0)
	for round := range 12 {
		for range 40 {
			k, v := fmt.Appendf(nil, "key%02d", rng.IntN(60)), make([]byte, rng.IntN(2000))
			require.NoError(t, db.Set(k, v, NoSync))
		}
		if round%4 == 3 {
			require.NoError(t, db.DeleteRange([]byte("key1"), []byte("key3"), NoSync))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		settleStore(t, db)
		b := requireBlobMetrics(t, db)
		garbage = max(garbage, b.Garbage)
		require.Equal(t, events.Written, b.Written)
		require.Equal(t, events.Relocated, b.Relocated)
		require.GreaterOrEqual(t, events.Files, b.Files)
		require.InDelta(t, float64(b.Bytes)/float64(b.LiveBytes), b.SpaceAmplification(), 1e-9)
		require.GreaterOrEqual(t, b.SpaceAmplification(), 1.0)
	}
	require.Positive(t, garbage, "something was overwritten")
	was := db.Metrics()
	require.NoError(t, db.Set([]byte("one"), make([]byte, 300), NoSync))
	settleStore(t, db)
	_, err = db.Get([]byte("one"))
	require.NoError(t, err)
	since := db.Metrics().Sub(was)
	require.Less(t, since.Blobs.Written, since.FlushBytes)
	require.Greater(t, since.Blobs.Read, uint64(20), "a record with its head, compressed")
	require.Greater(t, since.Blobs.Written, since.Blobs.Read)
	require.Equal(t, db.Metrics().Blobs.Bytes, since.Blobs.Bytes, "what is of the moment stays")
	require.NoError(t, db.Close())
	closed := db.Metrics().Blobs
	require.Zero(t, closed.Files)
	require.Equal(t, events.Written, closed.Written)

	db, err = Open("db", o)
	require.NoError(t, err)
	settleStore(t, db)
	again := requireBlobMetrics(t, db)
	require.Positive(t, again.LiveBytes)
	require.Zero(t, again.Read)
	require.NoError(t, db.Close())
}
