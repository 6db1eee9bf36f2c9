package kv

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// A largeStore is a small store with the proportions of one of large values: it has many memtables' worth of values,
// many blob files, and tables of a thirtieth of what they refer to.
type largeStore struct {
	*DB
	t     *testing.T
	rng   *rand.Rand
	bytes *rand.ChaCha8
	clock *storetest.Clock
	keys  int
	sizes map[int]int       // of values, by key
	ends  map[int]time.Time // when they expire
}

const (
	largeKeys   = 4000
	largeValue  = 1000
	largeFlush  = 64 << 10
	largeRecord = 24 // bytes of one besides its value
)

func openLarge(t *testing.T, kind CompactionStyle, space float64) *largeStore {
	t.Helper()
	return openLargeOn(t, kind, space, vfs.NewMem())
}

func openLargeOn(t *testing.T, kind CompactionStyle, space float64, disk vfs.FS) *largeStore {
	t.Helper()
	clock := &storetest.Clock{}
	db, err := Open("db", &Options{harness: harness.Harness{FS: disk, BlobSize: 32 << 10}, SeparateFrom: 100,
		BlobSpace: space, Compaction: kind,
		MemtableSize: largeFlush, TargetFileSize: 32 << 10, BaseLevelSize: 32 << 10,
		MaxConcurrentCompactions: threadsFor(kind), Compression: sstable.NoCompression, Clock: clock.Time})
	require.NoError(t, err)
	s := &largeStore{DB: db, t: t, rng: rand.New(rand.NewPCG(1, 2)), bytes: rand.NewChaCha8([32]byte{3}), clock: clock,
		keys: largeKeys, sizes: map[int]int{}, ends: map[int]time.Time{}}
	for i := range s.keys {
		s.put(i, largeValue, 0)
	}
	s.rest()
	return s
}

func (s *largeStore) key(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }

func (s *largeStore) put(i, size int, ttl time.Duration) {
	value := make([]byte, size)
	_, _ = s.bytes.Read(value)
	delete(s.ends, i)
	if ttl > 0 {
		require.NoError(s.t, s.SetTTL(s.key(i), value, ttl, NoSync))
		s.ends[i] = s.clock.Time().Add(ttl)
	} else {
		require.NoError(s.t, s.Set(s.key(i), value, NoSync))
	}
	s.sizes[i] = size
}

// rest flushes, and waits until nothing is left to do.
func (s *largeStore) rest() {
	require.NoError(s.t, s.Flush(context.Background()))
	s.settle()
}

// needed returns the bytes of the records that are needed.
func (s *largeStore) needed() (sum float64) {
	for i, size := range s.sizes {
		if end, ok := s.ends[i]; !ok || end.After(s.clock.Time()) {
			sum += float64(size + largeRecord)
		}
	}
	return sum
}

// held returns the bytes of all records in blob files.
func (s *largeStore) held() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.current.BlobTotals().RecordBytes)
}

// requireLimit requires that blob files have no more than the limit and a batch.
func (s *largeStore) requireLimit() {
	s.t.Helper()
	s.mu.Lock()
	batch := s.compactionInput(s.current).BlobSpace().Batch
	s.mu.Unlock()
	needed := s.needed()
	if len(s.ends) > 0 { // of a table's values the store knows in eighths how many have expired
		needed += needed / 16
	}
	require.LessOrEqual(s.t, s.held(), needed*s.opts.BlobSpace+batch)
}

// A store that rests after each memtable is within its limit and a batch at any moment, whatever is written.
func TestBlobFilesKeepToTheirLimit(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes; TestOverwritesBesideTheCopyingOfCompactKeepToTheLimit has its goroutines")
	for _, kind := range []CompactionStyle{Leveled, Tiered, LazyLeveled} {
		for name, pattern := range map[string]func(s *largeStore, n int){
			"uniform":  func(s *largeStore, _ int) { s.put(s.rng.IntN(s.keys), largeValue, 0) },
			"in order": func(s *largeStore, n int) { s.put(n%s.keys, largeValue, 0) },
			"permuted": func(s *largeStore, n int) { s.put(n*1237%s.keys, largeValue, 0) },
			"zipf": func(s *largeStore, _ int) {
				s.put(int(math.Pow(float64(s.keys), s.rng.Float64()))-1, largeValue, 0)
			},
			"mixed sizes": func(s *largeStore, _ int) { s.put(s.rng.IntN(s.keys), 100<<s.rng.IntN(6), 0) },
			"deleted": func(s *largeStore, n int) {
				if i := s.rng.IntN(s.keys); n%2 == 0 {
					s.put(i, largeValue, 0)
				} else {
					require.NoError(s.t, s.Delete(s.key(i), NoSync))
					delete(s.sizes, i)
				}
			},
			"one in each file is left": func(s *largeStore, n int) {
				if i := n % s.keys; i%30 > 0 {
					s.put(i, largeValue, 0)
				}
			},
			"expiring": func(s *largeStore, n int) {
				s.put(n%s.keys, largeValue, time.Duration(1+s.rng.IntN(s.keys))*time.Second)
				s.clock.Advance(time.Second)
			},
			"ranges deleted": func(s *largeStore, n int) {
				if n%500 == 499 {
					lo := s.rng.IntN(s.keys)
					require.NoError(s.t, s.DeleteRange(s.key(lo), s.key(lo+300), NoSync))
					for i := lo; i < lo+300; i++ {
						delete(s.sizes, i)
					}
				}
				s.put(s.rng.IntN(s.keys), largeValue, 0)
			},
		} {
			if !scale.Long() && int(name[0])%3 != int(kind) {
				continue // each pattern in one style
			}
			t.Run(fmt.Sprint(kind, "/", name), func(t *testing.T) {
				s := openLarge(t, kind, 1.4)
				for i := range min(scale.Count(2, 4), 4) * s.keys {
					pattern(s, i)
					if i%60 == 59 { // a memtable is full
						s.rest()
						s.requireLimit()
					}
				}
				requireBlobs(t, s.DB)
				require.NoError(t, s.Close())
			})
		}
	}
}

// expectedWrites simulates uniform overwrites of a store of blob files, of which the emptiest are collected: how many
// bytes of values are written for each that is overwritten, once that is steady. It knows no tables: nothing is hidden
// but what waits in memtables, of which each makes some files.
func expectedWrites(keys, perFile, perFlush int, most, batch float64, rng *rand.Rand) float64 {
	type file struct{ live, all int }
	var files []*file
	at := make([]*file, keys)
	var open *file
	written, held := 0, 0
	put := func(k int) {
		if at[k] != nil {
			at[k].live--
		}
		if open == nil || open.all == perFile {
			open = &file{}
			files = append(files, open)
		}
		at[k] = open
		open.live++
		open.all++
		written++
		held++
	}
	for k := range keys {
		put(k)
	}
	n := 0
	for round := range 16 * keys / perFlush {
		if open = nil; round == 8*keys/perFlush {
			written, n = 0, 0
		}
		seen := map[int]bool{}
		for range perFlush {
			seen[rng.IntN(keys)] = true
		}
		n += perFlush
		for _, k := range slices.Sorted(maps.Keys(seen)) {
			put(k)
		}
		if float64(held) <= most*float64(keys) {
			continue
		}
		slices.SortStableFunc(files, func(a, b *file) int {
			return cmp.Compare(float64(a.live)/float64(a.all), float64(b.live)/float64(b.all))
		})
		victims := map[*file]bool{}
		for left := float64(held); left > (most-batch)*float64(keys); {
			victims[files[0]] = true
			left -= float64(files[0].all - files[0].live)
			held -= files[0].all
			files = files[1:]
		}
		open = nil
		for k := range keys {
			if victims[at[k]] {
				put(k)
			}
		}
	}
	return float64(written) / float64(n)
}

// What is written to blob files under random overwrites is what a simulation says that collects the emptiest first, and
// both are near the formula: ln(1/u) / (1-u) is the space that goes with 1/(1-u) writes.
func TestBlobFilesAreWrittenAsOftenAsExpected(t *testing.T) {
	scale.OneGoroutine(t, "a count of bytes")
	t.Parallel()
	for _, space := range []float64{1.3, 1.5}[:min(scale.Count(1, 2), 2)] {
		s := openLarge(t, Leveled, space)
		sum, n, batch := 0.0, 0, 0.0
		total := func() float64 {
			return float64(s.counters.BlobRelocated.Load()) + float64(s.counters.FlushBytes.Load())
		}
		before := 0.0
		for i := range 12 * s.keys {
			if i == 4*s.keys {
				before = total()
			}
			s.put(s.rng.IntN(s.keys), largeValue, 0)
			if i%60 == 59 {
				if s.rest(); i > 4*s.keys {
					sum, n = sum+s.held()/s.needed(), n+1
					s.mu.Lock()
					b := s.compactionInput(s.current).BlobSpace()
					batch += b.Batch / b.Needed
					s.mu.Unlock()
				}
			}
		}
		mean := sum / float64(n)
		wrote := (total() - before) / (8 * float64(s.keys) * (largeValue + largeRecord))
		expected := expectedWrites(s.keys, 31, 60, space, batch/float64(n), s.rng)
		u := 0.0
		for step := 0.001; step < 1; step += 0.001 {
			if math.Log(1/step)/(1-step) > mean {
				u = step
			}
		}
		t.Logf("space %.2f: %.3f at the mean, written %.3f times, simulated %.3f, by the formula %.3f", space, mean,
			wrote, expected, 1/(1-u))
		require.InEpsilon(t, 1/(1-u), wrote, 0.1)
		require.InEpsilon(t, expected, wrote, 0.16, "what tables hide until they are merged comes on top")
		require.NoError(t, s.Close())
	}
}

// Under writes that never rest a store keeps to its limit, and what writers wait at, with what was in memtables then;
// and once they end, to its limit.
func TestBlobFilesKeepToTheirLimitUnderConstantWrites(t *testing.T) {
	scale.OneGoroutine(t, "TestOverwritesBesideTheCopyingOfCompactKeepToTheLimit has its goroutines and one more")
	t.Parallel()
	for _, kind := range []CompactionStyle{Leveled, Tiered, LazyLeveled} {
		t.Run(kind.String(), func(t *testing.T) {
			s := openLarge(t, kind, 1.3)
			s.overwriteWithin(t, 1.3)
			s.rest()
			s.requireLimit()
			require.NoError(t, s.Close())
		})
	}
}

// overwriteWithin overwrites values at random. The store never holds more than times its data, the largest batch that
// writers wait for, and what the memtables had. How large the batch is changes with the tables' size all the time.
func (s *largeStore) overwriteWithin(t *testing.T, times float64) {
	t.Helper()
	memtables := float64(s.opts.MaxMemtables * largeFlush)
	for i := range scale.Fewer(max(scale.Count(3, 12), 3), 1) * s.keys {
		s.put(s.rng.IntN(s.keys), largeValue, 0)
		if i%20 == 0 {
			s.mu.Lock()
			largest := s.compactionInput(s.current).BlobSpace().Allowed / 3
			s.mu.Unlock()
			require.LessOrEqual(t, s.held(), s.needed()*times+max(largest, 2*largeFlush)+memtables)
		}
	}
}
