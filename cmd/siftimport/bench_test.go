package main

import (
	"encoding/binary"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/siftkv/siftkv/internal/turns"
)

// BenchmarkImport compares an import with a copy of the same store's files, byte for byte: each begins with the source
// out of the page cache and ends with everything on stable storage. The two take turns.
//
//	go test -run '^$' -bench Import -benchtime 3x
//	IMPORT_MIB=1024 IMPORT_VALUE=1000 go test -run '^$' -bench Import/pebble -benchtime 3x
//
// Stores have IMPORT_MIB of keys and values, 256 by default, in values of IMPORT_VALUE bytes, 100 by default, half of
// which can be compressed. Speeds are in MiB of the source's files per second. On a machine that has other work, what a
// second of a processor does says more.
func BenchmarkImport(b *testing.B) {
	size := number(b, "IMPORT_MIB", 256) << 20
	value := number(b, "IMPORT_VALUE", 100)
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			source := filepath.Join(b.TempDir(), kind)
			w := create(b, kind, source)
			fill(b, w, size/(16+value), value)
			bytes := sizeOf(b, source)
			var copying, importing, trusting []float64
			processor := 0.0 // seconds of all imports
			for b.Loop() {
				copying = append(copying, seconds(b, source, func(to string) { copyTree(b, source, to) }))
				for times, flag := range map[*[]float64]string{&importing: "--verify", &trusting: "--no-verify"} {
					*times = append(*times, seconds(b, source, func(to string) {
						p := program{stdout: io.Discard, stderr: io.Discard}
						args := []string{"siftimport", kind + ":" + source, to, flag}
						before := turns.ProcessorTime()
						require.Zero(b, p.run(b.Context(), args))
						processor += (turns.ProcessorTime() - before).Seconds()
					}))
				}
			}
			speed := func(times []float64) float64 {
				slices.Sort(times)
				return bytes / (1 << 20) / times[len(times)/2]
			}
			b.ReportMetric(bytes/(1<<20), "MiB")
			b.ReportMetric(speed(copying), "copy-MiB/s")
			b.ReportMetric(speed(importing), "import-MiB/s")
			b.ReportMetric(speed(trusting), "unverified-MiB/s")
			b.ReportMetric(speed(importing)/speed(copying), "of-copy")
			b.ReportMetric(speed(trusting)/speed(copying), "unverified-of-copy")
			imports := float64(len(importing) + len(trusting))
			b.ReportMetric(imports*bytes/(1<<20)/processor, "MiB/processor-s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func number(tb testing.TB, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(tb, err)
	return n
}

// fill writes n entries in random order of their keys, of 16 bytes.
func fill(tb testing.TB, w writer, n, valueSize int) {
	rng := rand.New(rand.NewPCG(1, 2))
	key, value := make([]byte, 16), make([]byte, valueSize)
	for i := range n {
		binary.BigEndian.PutUint64(key, rng.Uint64())
		binary.BigEndian.PutUint64(key[8:], uint64(i))
		for at := 0; at+8 <= valueSize/2; at += 8 {
			binary.LittleEndian.PutUint64(value[at:at+8], rng.Uint64())
		}
		require.NoError(tb, w.put(key, value))
	}
	require.NoError(tb, w.close())
}

// seconds returns how long f takes to fill a path beside the source, which is on the disk and in no cache.
func seconds(tb testing.TB, source string, f func(to string)) float64 {
	walk(tb, source, func(path string) { evict(tb, path) })
	to := source + ".copy"
	start := time.Now()
	f(to)
	took := time.Since(start).Seconds()
	require.NoError(tb, os.RemoveAll(to))
	return took
}

// evict takes a file's pages out of the cache.
func evict(tb testing.TB, path string) {
	f, err := os.Open(path)
	require.NoError(tb, err)
	require.NoError(tb, f.Sync())
	require.NoError(tb, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	require.NoError(tb, f.Close())
}

// copyTree copies a file, or a directory of files, as cp -r does, and syncs every file.
func copyTree(tb testing.TB, from, to string) {
	info, err := os.Stat(from)
	require.NoError(tb, err)
	if info.IsDir() {
		require.NoError(tb, os.Mkdir(to, 0o755))
	}
	walk(tb, from, func(path string) {
		rel, err := filepath.Rel(from, path)
		require.NoError(tb, err)
		in, err := os.Open(path)
		require.NoError(tb, err)
		out, err := os.Create(filepath.Join(to, rel))
		require.NoError(tb, err)
		_, err = io.Copy(out, in)
		require.NoError(tb, err)
		require.NoError(tb, out.Sync())
		require.NoError(tb, out.Close())
		require.NoError(tb, in.Close())
	})
}

// walk calls f with the files at or below a path.
func walk(tb testing.TB, root string, f func(path string)) {
	require.NoError(tb, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			f(path)
		}
		return err
	}))
}

func sizeOf(tb testing.TB, root string) (size float64) {
	walk(tb, root, func(path string) {
		info, err := os.Stat(path)
		require.NoError(tb, err)
		size += float64(info.Size())
	})
	require.Positive(tb, size, root)
	return size
}
