package kv

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/turns"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// BenchmarkOpenManyFiles opens a store of 5,000 sorted files and 10,000 blob files, which the system has in memory.
// What it costs is a few microseconds for each of them: a look at its size, and its place in the version.
func BenchmarkOpenManyFiles(b *testing.B) {
	const tables, blobs = 5_000, 10_000
	dir, from := b.TempDir(), b.TempDir()
	o := &Options{harness: harness.Harness{FS: vfs.OS, BlobSize: 1}, SeparateFrom: 100, BlobSpace: 10}
	db := openDir(b, dir, o)
	db.compactions.Paused = true // small blob files would be joined
	var paths []string
	for t := range tables {
		path := filepath.Join(from, strconv.Itoa(t))
		f, err := os.Create(path)
		require.NoError(b, err)
		w := sstable.NewWriter(f, nil)
		require.NoError(b, w.Set(binary.BigEndian.AppendUint64(nil, uint64(t)), []byte("value")))
		_, err = w.Finish()
		require.NoError(b, err)
		require.NoError(b, f.Close())
		paths = append(paths, path)
	}
	require.NoError(b, db.Ingest(b.Context(), paths, nil))
	value := make([]byte, 200)
	for n := range blobs {
		require.NoError(b, db.Set(binary.BigEndian.AppendUint64([]byte("blob"), uint64(n)), value, Async))
	}
	require.NoError(b, db.Flush(b.Context()))
	require.NoError(b, db.Close())
	took := time.Duration(0)
	for b.Loop() {
		runtime.GC()
		began := turns.ProcessorTime()
		db := openDir(b, dir, o)
		took += turns.ProcessorTime() - began
		m := db.Metrics()
		require.Equal(b, []int{1, tables, blobs}, []int{m.Levels[0].Files, m.Levels[lastLevel].Files, m.Blobs.Files})
		require.NoError(b, db.Close())
	}
	b.ReportMetric(float64(took.Microseconds())/float64(b.N)/1000, "cpu-ms")
	b.ReportMetric(0, "ns/op")
}
