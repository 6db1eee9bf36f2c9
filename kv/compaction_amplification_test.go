package kv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/sstable"
	"github.com/stretchr/testify/require"
)

// An overwriting is a store of so many memtables whose keys are written in random order, and
// then each once more in every round. Memtables, files and levels have the proportions that
// they have by default, and are small.
type overwriting struct {
	memtable  int
	memtables int // that the store's data would fill
	value     int // bytes
	rounds    int
	rest      bool // after each memtable until nothing is left to do: counts are then the same in each run
}

// amplification is what an overwriting of incompressible values finds. Space and runs are
// taken after each memtable, from the first overwrite on.
type amplification struct {
	write, space, mostSpace, runs float64
}

func (o overwriting) run(t testing.TB, s overwritten) (a amplification) {
	rng := rand.New(rand.NewPCG(1, 2))
	source := rand.NewChaCha8([32]byte{1})
	value := make([]byte, o.value)
	entry := o.value + 16
	n := o.memtable * o.memtables / entry
	pending, samples := 0, 0.0
	for round := range o.rounds + 1 {
		for _, k := range rng.Perm(n) {
			_, _ = source.Read(value)
			require.NoError(t, s.write(fmt.Appendf(nil, "key%013d", k), value))
			if pending += entry; pending < o.memtable {
				continue
			}
			pending = 0
			if o.rest {
				s.wait()
			}
			if round > 0 {
				bytes, runs := s.shape()
				space := float64(bytes) / float64(n*entry)
				a.space, a.runs, samples = a.space+space, a.runs+float64(runs), samples+1
				a.mostSpace = max(a.mostSpace, space)
			}
		}
	}
	s.wait()
	a.write = float64(s.written()) / float64(n*entry*(o.rounds+1))
	a.space, a.runs = a.space/samples, a.runs/samples
	return a
}

// An overwritten store is what an overwriting writes to.
type overwritten struct {
	*DB
	t     testing.TB
	flush bool
}

func (o overwriting) siftKV(t testing.TB) overwritten {
	size := o.memtable
	if o.rest {
		size *= 2 // wait says when to flush: when a memtable is full depends on the heights of its list's nodes
	}
	db, err := Open("", &Options{InMemory: true, MemtableSize: int64(size), TargetFileSize: int64(o.memtable),
		BaseLevelSize: 2 * int64(o.memtable), Compression: sstable.NoCompression, MaxConcurrentCompactions: 1})
	require.NoError(t, err)
	closeAtEnd(t, db)
	return overwritten{db, t, o.rest}
}

func (s overwritten) write(key, value []byte) error { return s.Set(key, value, NoSync) }

func (s overwritten) wait() {
	if s.flush {
		require.NoError(s.t, s.Flush(context.Background()))
	}
	s.waitForBackground()
}

// written returns the bytes of log, flushes and compactions.
func (s overwritten) written() int64 {
	m := s.Metrics()
	return int64(m.WALBytes + m.FlushBytes + m.CompactionWrittenBytes)
}

func (s overwritten) shape() (bytes int64, runs int) {
	for _, l := range s.Metrics().Levels {
		bytes, runs = bytes+l.Bytes, runs+l.Runs
	}
	return bytes, runs
}

// What is written stays within a bound whatever the size of the store, and so do the space
// that old versions take and the runs that lookups ask. The log and the flush are two of it.
func TestWriteAmplificationOfOverwrites(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes; TestDebtFallsFromCompactionToCompaction has its goroutines")
	for _, c := range []struct {
		memtables int
		most      amplification
	}{
		{16, amplification{write: 5.05, space: 1.17, mostSpace: 1.3, runs: 3}},
		{32, amplification{write: 6.6, space: 1.27, mostSpace: 1.34, runs: 3.5}},
		{96, amplification{write: 10.1, space: 1.26, mostSpace: 1.31, runs: 3.5}},
	}[:min(scale.Count(1, 3), 3)] {
		o := overwriting{memtable: 128 << 10, memtables: c.memtables, value: 1008, rounds: 3, rest: true}
		a := o.run(t, o.siftKV(t))
		t.Logf("%d memtables: %+v", c.memtables, a)
		require.LessOrEqual(t, a.write, c.most.write, "%d memtables: writes", c.memtables)
		require.LessOrEqual(t, a.space, c.most.space, "%d memtables: space", c.memtables)
		require.LessOrEqual(t, a.mostSpace, c.most.mostSpace, "%d memtables: most space", c.memtables)
		require.LessOrEqual(t, a.runs, c.most.runs, "%d memtables: runs", c.memtables)
	}
}

// BenchmarkWriteAmplification counts what overwrites of all keys, three times, write and take: with compactions that
// catch up after each memtable, and with a writer that goes as fast as it may. `kvbench compare --workload overwrite`
// has other stores.
func BenchmarkWriteAmplification(b *testing.B) {
	for _, rest := range []bool{true, false} {
		for _, value := range []int{1008, 16 << 10} {
			for _, memtables := range []int{8, 16, 32, 64, 128} {
				o := overwriting{memtable: 1 << 20, memtables: memtables, value: value, rounds: 3, rest: rest}
				name := fmt.Sprintf("rest=%v/value=%d/memtables=%d", rest, value, memtables)
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						a := o.run(b, o.siftKV(b))
						b.ReportMetric(a.write, "written/user")
						b.ReportMetric(a.space, "space")
						b.ReportMetric(a.mostSpace, "space-max")
						b.ReportMetric(a.runs, "runs")
					}
				})
			}
		}
	}
}
