package lookupsample

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/lookuptrace"
	"github.com/siftkv/siftkv/internal/scale"
)

// An asker is a sampler and what is asked of it.
type asker struct {
	*Sampler
	asked   uint64
	lowered []uint64
}

func newAsker(size, blocks int64) *asker {
	a := &asker{}
	a.Sampler = New(size, blocks, func() uint64 { return a.asked }, func(most uint64) {
		a.lowered = append(a.lowered, most)
	})
	return a
}

func (a *asker) lookup(key []byte, found bool) {
	a.asked++
	a.Lookup(key, xxhash.Sum64(key), found)
}

func (a *asker) scan(s Scan) { a.Scan(&s, xxhash.Sum64(s.Start)) }

func number(i int) []byte { return binary.BigEndian.AppendUint64([]byte("key-"), uint64(i)) }

// requireSound checks what holds of every sample.
func requireSound(t *testing.T, a *asker) Sample {
	t.Helper()
	s := a.Take()
	used := make([]bool, len(s.Keys))
	bytesOfKeys := 0
	seen := map[string]bool{}
	for _, l := range s.Lookups {
		used[l.Key] = true
	}
	for i, key := range s.Keys {
		require.True(t, used[i], "a key that no lookup has")
		require.False(t, seen[string(key)])
		seen[string(key)] = true
		require.LessOrEqual(t, lookuptrace.Mix(xxhash.Sum64(key)), a.Most())
		bytesOfKeys += len(key) + keyOverhead
	}
	require.Equal(t, a.keyBytes, bytesOfKeys)
	require.LessOrEqual(t, bytesOfKeys, a.keyRoom)
	ofScans := 0
	for i, o := range s.Scans {
		require.LessOrEqual(t, a.scans[i].hash, a.Most())
		ofScans += len(o.Start) + len(o.End) + 2*keyOverhead
	}
	require.Equal(t, a.scanBytes, ofScans)
	require.LessOrEqual(t, ofScans, a.scanRoom)
	require.InEpsilon(t, math.MaxUint64/float64(a.Most()), s.OneIn, 1e-9)
	return s
}

func TestASmallLoadIsThereWhole(t *testing.T) {
	a := newAsker(MinBytes, 0)
	for i := range 100 {
		a.lookup(number(i%7), i%7 < 3)
		a.scan(Scan{Start: number(i % 7), End: number(9), Entries: uint64(i), Backward: i%2 == 1, Ended: i%3 == 0})
	}
	s := requireSound(t, a)
	require.EqualValues(t, 1, s.OneIn)
	require.EqualValues(t, 100, s.Total)
	require.Zero(t, s.Dropped)
	require.Len(t, s.Keys, 7)
	require.Len(t, s.Lookups, 100)
	for i, l := range s.Lookups {
		require.Equal(t, number(i%7), s.Keys[l.Key])
		require.Equal(t, i%7 < 3, l.Found)
	}
	require.NotEmpty(t, s.Scans)
	last := s.Scans[len(s.Scans)-1]
	require.Equal(t, Scan{Start: number(99 % 7), End: number(9), Entries: 99, Backward: true, Ended: true}, last)
}

// Of a key all lookups are in the sample, or none, and a sample has as many keys as its threshold says.
func TestASampleIsOfKeys(t *testing.T) {
	a := newAsker(256<<10, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	const keys, rounds = 20_000, 40
	for range rounds {
		for _, i := range rng.Perm(keys) {
			a.lookup(number(i), true)
		}
	}
	s := requireSound(t, a)
	require.Greater(t, s.OneIn, 100.0)
	count := map[int32]int{}
	for _, l := range s.Lookups {
		count[l.Key]++
	}
	n := keys / s.OneIn
	require.InDelta(t, n, len(s.Keys), 5*math.Sqrt(n))
	for key, n := range count {
		require.InDelta(t, float64(s.Total)/keys, n, 2, s.Keys[key])
	}
	require.NotEmpty(t, a.lowered)
	require.Equal(t, a.Most(), a.lowered[len(a.lowered)-1])
}

// When the threshold is as low as it gets, old lookups go.
func TestASampleIsOfThePresent(t *testing.T) {
	a := newAsker(MinBytes, 0)
	for i := range 4_000_000 {
		a.lookup(number(i), false)
	}
	s := requireSound(t, a)
	require.EqualValues(t, firstSteady, math.Round(s.OneIn))
	require.Greater(t, len(s.Lookups), cap(a.lookups)/2-1)
	require.InDelta(t, float64(len(s.Lookups)), float64(s.Total)/s.OneIn, 6*math.Sqrt(float64(cap(a.lookups))))
	for i, key := range s.Keys {
		n := binary.BigEndian.Uint64(key[4:])
		require.Greater(t, n, uint64(4_000_000-3*cap(a.lookups)*firstSteady))
		require.True(t, i == 0 || n > binary.BigEndian.Uint64(s.Keys[i-1][4:]), "in the order of lookups")
	}
}

// A cache of many blocks wants a sample that reaches further back.
func TestALargeCacheWantsALongSample(t *testing.T) {
	const blocks = 1 << 16
	a := newAsker(MinBytes, blocks)
	for i := range 2_000_000 {
		a.lookup(number(i), false)
	}
	s := requireSound(t, a)
	require.Greater(t, s.Total, uint64(4*blocks))
	require.Greater(t, s.OneIn, 400.0)
}

// A key that is asked for all the time leaves the sample, so that lookups go on to cost what they do: at most
// one in leastSpacing is taken.
func TestAFavouriteIsLeftOut(t *testing.T) {
	a := newAsker(MinBytes, 0)
	const n = 2_000_000
	taken := 0
	for range n {
		before := a.Most()
		if lookuptrace.Mix(xxhash.Sum64(number(0))) <= before {
			taken++
		}
		a.lookup(number(0), true)
	}
	requireSound(t, a)
	require.Less(t, taken, 64*cap(a.lookups))
}

func TestLongKeysHaveRoom(t *testing.T) {
	a := newAsker(MinBytes, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 20_000 {
		key := append(number(i), make([]byte, rng.IntN(5000))...)
		a.lookup(key, false)
		a.scan(Scan{Start: key, End: bytes.Repeat(key, 3)})
	}
	s := requireSound(t, a)
	require.NotEmpty(t, s.Lookups)
	require.NotEmpty(t, s.Scans)
	require.Greater(t, s.OneIn, 1.0)
	require.Positive(t, s.Dropped, "keys of more than an eighth of the room")
	for _, o := range s.Scans {
		require.LessOrEqual(t, len(o.End), a.scanRoom/32)
	}
	a.Scan(&Scan{}, 0)
	s = requireSound(t, a)
	require.Equal(t, Scan{}, s.Scans[len(s.Scans)-1], "no bound stays none")
}

// The memory is what was asked for.
func TestMemoryIsBounded(t *testing.T) {
	scale.OneGoroutine(t, "a count of bytes")
	for _, size := range []int64{MinBytes, 1 << 20, 8 << 20} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		a := newAsker(size, 0)
		for i := range int(size / 8) {
			key := number(i)
			a.lookup(key, i%2 == 0)
			a.scan(Scan{Start: key, End: key})
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		grown := float64(after.HeapAlloc) - float64(before.HeapAlloc)
		require.Less(t, grown, 1.1*float64(size)+32<<10, strconv.FormatInt(size, 10))
		require.Greater(t, grown, 0.4*float64(size), strconv.FormatInt(size, 10))
		requireSound(t, a)
	}
}

func TestManyGoroutinesAreSampled(t *testing.T) {
	s := New(MinBytes, 0, func() uint64 { return 0 }, func(uint64) {})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 20_000 {
				key := number(g<<32 | i)
				s.Lookup(key, xxhash.Sum64(key), true)
				s.Scan(&Scan{Start: key}, xxhash.Sum64(key))
				if i%1000 == 0 {
					r := s.Take()
					for _, l := range r.Lookups {
						if r.Keys[l.Key] == nil {
							panic("a lookup without a key")
						}
					}
				}
			}
		})
	}
	all.Wait()
	require.NotEmpty(t, s.Take().Lookups)
}

// BenchmarkLookup is of what a lookup of a sampled key takes.
func BenchmarkLookup(b *testing.B) {
	s := New(1<<20, 0, func() uint64 { return 1 << 62 }, func(uint64) {})
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = number(i)
	}
	i := 0
	for b.Loop() {
		i++
		key := keys[i%len(keys)]
		s.Lookup(key, uint64(i%len(keys)), true)
	}
}
