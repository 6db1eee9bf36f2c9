package vfs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/racebuild"
	"github.com/siftkv/siftkv/internal/vfs"
)

// What ReadNow reads is what ReadAt reads, with and without a bound of open files. It
// reads no less than it was asked for, and nothing of a closed file.
func TestReadNow(t *testing.T) {
	data := make([]byte, 100_000)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	name := filepath.Join(t.TempDir(), "f")
	write(t, vfs.OS, name, string(data))
	for what, open := range map[string]func() (vfs.ReadFile, error){
		"bare":    func() (vfs.ReadFile, error) { return vfs.OS.Open(name) },
		"bounded": func() (vfs.ReadFile, error) { return vfs.NewReadLimit(1).Open(vfs.OS, name) },
	} {
		t.Run(what, func(t *testing.T) {
			f, err := open()
			require.NoError(t, err)
			now := f.(vfs.NowReader)
			buf := make([]byte, 5000)
			var readers sync.WaitGroup
			for range 4 {
				readers.Go(func() {
					buf := make([]byte, 90_000) // also as much as the scheduler is told of
					for range 200 {
						n, at := rand.IntN(len(buf)), rand.IntN(len(data)-len(buf))
						if now.ReadNow(buf[:n], int64(at)) == vfs.NowDone && !bytes.Equal(data[at:at+n], buf[:n]) {
							t.Errorf("%d bytes at %d are others", n, at)
						}
					}
				})
			}
			readers.Wait()
			require.Equal(t, vfs.NowDone, now.ReadNow(buf, int64(len(data)-len(buf))), "just written, it is in memory")
			require.NotEqual(t, vfs.NowDone, now.ReadNow(buf, int64(len(data)-len(buf)+1)), "past the end")
			require.Equal(t, vfs.NowUnable, now.ReadNow(buf, -1))
			require.Equal(t, vfs.NowUnable, now.ReadNow(nil, 0))
			require.Equal(t, vfs.NowDone, now.ReadNow(buf, 0), "what cannot be read does not matter to the next")
			for _, n := range []int{5000, len(data)} {
				buf := make([]byte, n)
				require.Equal(t, vfs.NowDone, now.ReadNow(buf, 0))
				require.Equal(t, data[:n], buf)
				if !racebuild.Enabled { // its pools forget
					require.Less(t, testing.AllocsPerRun(100, func() { now.ReadNow(buf, 0) }), 1.0)
				}
			}
			require.NoError(t, f.Close())
			require.Equal(t, vfs.NowUnable, now.ReadNow(buf, 0))
		})
	}
}

// BenchmarkStopBesideReadNow has one goroutine read from memory without a break, and reports how long the
// collector takes to stop the world, in the mean.
func BenchmarkStopBesideReadNow(b *testing.B) {
	data := make([]byte, 64<<20)
	name := filepath.Join(b.TempDir(), "f")
	require.NoError(b, os.WriteFile(name, data, 0o600))
	f, err := vfs.OS.Open(name)
	require.NoError(b, err)
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			var stop atomic.Bool
			var reader sync.WaitGroup
			reader.Go(func() {
				for !stop.Load() {
					f.(vfs.NowReader).ReadNow(data[:size], 0)
				}
			})
			var took time.Duration
			for b.Loop() {
				var m runtime.MemStats
				began := time.Now()
				runtime.ReadMemStats(&m)
				took += time.Since(began)
				time.Sleep(time.Millisecond)
			}
			stop.Store(true)
			reader.Wait()
			b.ReportMetric(float64(took)/float64(b.N), "stop-ns")
		})
	}
	require.NoError(b, f.Close())
}
