package kv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
	"github.com/stretchr/testify/require"
)

// A largeStore is a small store with the proportions of one of large values: it has many memtables' worth of values,
// many blob files, and tables of a thirtieth of what they refer to.
type largeStore struct {
	*DB
	t     *testing.T
	rng   *rand.Rand
	bytes *rand.ChaCha8
	clock *fakeClock
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
	clock := &fakeClock{}
	db, err := Open("db", &Options{fs: vfs.NewMem(), SeparateFrom: 100, BlobSpace: space, Compaction: kind,
		MemtableSize: largeFlush, blobSize: 32 << 10, TargetFileSize: 32 << 10, BaseLevelSize: 32 << 10,
		MaxConcurrentCompactions: threadsFor(kind), Compression: sstable.NoCompression, Clock: clock.time})
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
		s.ends[i] = s.clock.time().Add(ttl)
	} else {
		require.NoError(s.t, s.Set(s.key(i), value, NoSync))
	}
	s.sizes[i] = size
}

// rest flushes, and waits until nothing is left to do.
func (s *largeStore) rest() {
	require.NoError(s.t, s.Flush())
	s.settle()
}

// needed returns the bytes of the records that are needed.
func (s *largeStore) needed() (sum float64) {
	for i, size := range s.sizes {
		if end, ok := s.ends[i]; !ok || end.After(s.clock.time()) {
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
	batch := s.blobSpace(s.current).batch
	s.mu.Unlock()
	require.LessOrEqual(s.t, s.held(), s.needed()*s.opts.BlobSpace+batch)
}

// A store that rests after each memtable is within its limit and a batch at any moment, whatever is written.
func TestBlobFilesKeepToTheirLimit(t *testing.T) {
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
				s.clock.advance(time.Second)
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
			t.Run(fmt.Sprint(kind, "/", name), func(t *testing.T) {
				s := openLarge(t, kind, 1.4)
				for i := range 4 * s.keys {
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
