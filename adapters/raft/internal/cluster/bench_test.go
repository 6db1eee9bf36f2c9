package cluster

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	wal "github.com/hashicorp/raft-wal"
	raftbench "github.com/hashicorp/raft/bench"
	"github.com/stretchr/testify/require"

	siftraft "github.com/siftkv/siftkv/adapters/raft"
	"github.com/siftkv/siftkv/internal/turns"
)

// A subject is a store that the benchmarks of raft run with.
type subject interface {
	raft.LogStore
	raft.StableStore
	Close() error
}

var subjects = []struct {
	name string
	open func(dir string) (subject, error)
}{
	{"siftkv", func(dir string) (subject, error) { return siftraft.Open(dir, nil) }},
	{"wal", func(dir string) (subject, error) { return wal.Open(dir) }},
	{"boltdb", func(dir string) (subject, error) { return raftboltdb.NewBoltStore(filepath.Join(dir, "raft.db")) }},
}

// benchmark runs one of raft's benchmarks with each subject. It reports the processor time too: syncs wait for a disk.
// That is the time of all that run does, also of what it does while the timer is stopped, or before a reset.
// raft-wal is left out of those that store an entry 0, or remove some from the middle, as raft never does.
func benchmark(b *testing.B, run func(*testing.B, subject), except ...string) {
	eachSubject(b, func(b *testing.B, s subject) {
		start := turns.ProcessorTime()
		run(b, s)
		b.ReportMetric(float64(turns.ProcessorTime()-start)/float64(b.N), "cpu-ns/op")
	}, except...)
}

// eachSubject is benchmark without the processor time.
func eachSubject(b *testing.B, run func(*testing.B, subject), except ...string) {
	for _, s := range subjects {
		if slices.Contains(except, s.name) {
			continue
		}
		b.Run(s.name, func(b *testing.B) {
			store, err := s.open(b.TempDir())
			require.NoError(b, err)
			b.ReportAllocs()
			b.ResetTimer()
			run(b, store)
			b.StopTimer()
			require.NoError(b, store.Close())
		})
	}
}

func onLog(run func(*testing.B, raft.LogStore)) func(*testing.B, subject) {
	return func(b *testing.B, s subject) { run(b, s) }
}

func onStable(run func(*testing.B, raft.StableStore)) func(*testing.B, subject) {
	return func(b *testing.B, s subject) { run(b, s) }
}

func BenchmarkFirstIndex(b *testing.B)  { benchmark(b, onLog(raftbench.FirstIndex)) }
func BenchmarkLastIndex(b *testing.B)   { benchmark(b, onLog(raftbench.LastIndex)) }
func BenchmarkGetLog(b *testing.B)      { benchmark(b, onLog(raftbench.GetLog)) }
func BenchmarkStoreLog(b *testing.B)    { benchmark(b, onLog(raftbench.StoreLog), "wal") }
func BenchmarkStoreLogs(b *testing.B)   { benchmark(b, onLog(raftbench.StoreLogs)) }
func BenchmarkDeleteRange(b *testing.B) { benchmark(b, onLog(raftbench.DeleteRange), "wal") }
func BenchmarkSet(b *testing.B)         { benchmark(b, onStable(raftbench.Set)) }
func BenchmarkGet(b *testing.B)         { benchmark(b, onStable(raftbench.Get)) }
func BenchmarkSetUint64(b *testing.B)   { benchmark(b, onStable(raftbench.SetUint64)) }
func BenchmarkGetUint64(b *testing.B)   { benchmark(b, onStable(raftbench.GetUint64)) }

// BenchmarkAppend stores what a busy leader does: entries of 512 bytes in batches of 64, behind one another.
func BenchmarkAppend(b *testing.B) {
	benchmark(b, func(b *testing.B, s subject) {
		const batch, size = 64, 512
		data := make([]byte, size)
		b.SetBytes(batch * size)
		for n := range uint64(b.N) {
			entries := make([]*raft.Log, batch)
			for i := range entries {
				entries[i] = &raft.Log{Index: 1 + n*batch + uint64(i), Term: 1, Data: data}
			}
			require.NoError(b, s.StoreLogs(entries))
		}
	})
}

// BenchmarkCompact removes the 10,000 oldest of 20,000 entries of 512 bytes, as raft does behind a snapshot. It reports
// no processor time, most of which would be that of storing entries, while the timer is stopped.
func BenchmarkCompact(b *testing.B) {
	eachSubject(b, func(b *testing.B, s subject) {
		const removed, step = 10_000, 500
		data := make([]byte, 512)
		next := uint64(1)
		add := func(n int) {
			for range n / step {
				entries := make([]*raft.Log, step)
				for i := range entries {
					entries[i] = &raft.Log{Index: next, Term: 1, Data: data}
					next++
				}
				require.NoError(b, s.StoreLogs(entries))
			}
		}
		b.StopTimer()
		add(removed)
		for range b.N {
			add(removed)
			b.StartTimer()
			first, err := s.FirstIndex()
			require.NoError(b, err)
			require.NoError(b, s.DeleteRange(first, first+removed-1))
			b.StopTimer()
		}
	})
}
