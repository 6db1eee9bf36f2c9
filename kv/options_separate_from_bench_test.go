package kv

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
)

// thresholdSizes are the lengths of values, in bytes, around the default of Options.SeparateFrom.
var thresholdSizes = []int{1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10}

// A thresholdStore is a store of 64 MiB of values of one length, as a benchmark of lengths has it: with memtables,
// files and levels an eighth as large as they are by default, and a cache that has little of the values.
type thresholdStore struct {
	*DB
	b    *testing.B
	keys int
	size int
	cpu  map[string]float64 // the least that anything took, in nanoseconds
}

const thresholdMemtable = 4 << 20

// openThreshold returns a store that has had each key once, and three times as many random overwrites.
func openThreshold(b *testing.B, size, separateFrom int) *thresholdStore {
	b.Helper()
	db, err := Open(b.TempDir(), &Options{SeparateFrom: separateFrom, MemtableSize: 2 * thresholdMemtable,
		TargetFileSize: thresholdMemtable, BaseLevelSize: 2 * thresholdMemtable, CacheSize: 4 << 20})
	require.NoError(b, err)
	s := &thresholdStore{DB: db, b: b, keys: 64 << 20 / size, size: size, cpu: map[string]float64{}}
	rng, source := rand.New(rand.NewPCG(1, 2)), rand.NewChaCha8([32]byte{1})
	order, value, pending := rng.Perm(s.keys), make([]byte, size), 0
	began := float64(turns.ProcessorTime())
	for i := range 4 * s.keys {
		k := rng.IntN(s.keys)
		if i < s.keys {
			k = order[i]
		}
		_, _ = source.Read(value)
		require.NoError(b, db.Set(readBenchKey(nil, k), value, Async))
		if pending += size; pending >= thresholdMemtable {
			pending = 0
			s.rest()
		}
	}
	s.rest()
	s.least("write", float64(turns.ProcessorTime())-began, 4*s.keys)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	return s
}

// rest flushes, and waits until nothing is left to do, so that bytes are the same in each run.
func (s *thresholdStore) rest() {
	require.NoError(s.b, s.Flush(context.Background()))
	s.waitForBackground()
}

func (s *thresholdStore) least(what string, nanoseconds float64, n int) {
	if least, ok := s.cpu[what]; !ok || nanoseconds/float64(n) < least {
		s.cpu[what] = nanoseconds / float64(n)
	}
}

// timed notes what n calls of do take for one of them.
func (s *thresholdStore) timed(what string, n int, do func()) {
	runtime.GC()
	began := float64(turns.ProcessorTime())
	do()
	s.least(what, float64(turns.ProcessorTime())-began, n)
}

// read does each kind of reading once.
func (s *thresholdStore) read(state string) {
	for _, o := range []struct {
		what string
		o    IterOptions
	}{{"values", IterOptions{}}, {"keys", IterOptions{KeysOnly: true}}} {
		s.timed(state+o.what, s.keys, func() { require.Equal(s.b, s.keys, scanLarge(s.b, s.DB, &o.o, false)) })
	}
	n := min(s.keys, 16_000)
	var key []byte
	s.timed(state+"get", n, func() {
		for i := range n {
			key = readBenchKey(key, i*7919%s.keys)
			v, err := s.Get(key)
			if err != nil || len(v) != s.size {
				s.b.Fatal(len(v), err)
			}
		}
	})
	var dst []byte
	s.timed(state+"append", n, func() {
		for i := range n {
			key = readBenchKey(key, i*7919%s.keys)
			var err error
			if dst, err = s.AppendGet(dst[:0], key); err != nil || len(dst) != s.size {
				s.b.Fatal(len(dst), err)
			}
		}
	})
}

// BenchmarkSeparateFrom compares values in tables and separate ones, by their length: what of bytes and of processors
// writes take, and what reads take of a store as it was overwritten and after a full compaction. Stores are read in
// turns, and of what reads take the least is reported, since what else a machine does takes its caches.
func BenchmarkSeparateFrom(b *testing.B) {
	for _, size := range thresholdSizes {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			stores := map[string]*thresholdStore{}
			for b.Loop() {
				stores["inline"], stores["separated"] = openThreshold(b, size, -1), openThreshold(b, size, 512)
			}
			for name, s := range stores {
				m, data := s.Metrics(), float64(s.keys*(s.size+16))
				b.ReportMetric(float64(m.WALBytes+m.FlushBytes+m.CompactionWrittenBytes)/data/4, name+"-written")
				space := float64(m.Blobs.Bytes)
				for _, l := range m.Levels {
					space += float64(l.Bytes)
				}
				b.ReportMetric(space/data, name+"-space")
			}
			for _, state := range []string{"", "compacted-"} {
				for range 5 {
					for _, s := range stores {
						s.read(state)
					}
				}
				for _, s := range stores {
					require.NoError(b, s.Compact(b.Context(), nil, nil))
				}
			}
			for name, s := range stores {
				for what, cpu := range s.cpu {
					b.ReportMetric(cpu/1000, name+"-"+what+"-µs")
				}
			}
		})
	}
}
