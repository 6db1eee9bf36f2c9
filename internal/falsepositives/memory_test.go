package falsepositives

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func key(i int) ([]byte, uint64) {
	return fmt.Appendf(nil, "key%06d", i), rand.New(rand.NewPCG(uint64(i), 1)).Uint64()
}

func TestRemember(t *testing.T) {
	m := New(1 << 10)
	a, b := m.NewTable(), m.NewTable()
	k, hash := key(1)
	require.False(t, a.Remembers(k, hash))
	require.Zero(t, m.Bytes(), "nothing is taken before there is something to remember")
	for range 3 {
		a.Remember(k, hash)
	}
	require.True(t, a.Remembers(k, hash))
	require.False(t, b.Remembers(k, hash), "it is a fact of one table")
	require.Equal(t, 1, m.Len())
	require.Equal(t, int64(1<<10)+FactBytes, m.Bytes())
	require.LessOrEqual(t, int(unsafe.Sizeof(fact{})), FactBytes)
	require.LessOrEqual(t, int(unsafe.Sizeof(set{}))+8*ways, SlotBytes*ways)
	k[0] = 'x'
	require.False(t, a.Remembers(k, hash))
	k[0] = 'k'
	require.True(t, a.Remembers(k, hash), "the key was copied")
}

func TestLengths(t *testing.T) {
	m := New(1 << 20)
	table := m.NewTable()
	for n := range MaxKey + 300 { // beyond a length's eight bits too
		hash := uint64(n) << 32
		table.Remember(make([]byte, n), hash)
		require.Equal(t, n <= MaxKey, table.Remembers(make([]byte, n), hash), n)
		require.False(t, table.Remembers(make([]byte, n+1), hash))
	}
	require.Equal(t, MaxKey+1, m.Len())
}

func TestNothingIsRemembered(t *testing.T) {
	var none *Memory
	for _, table := range []Table{{}, none.NewTable()} {
		table.Remember([]byte("key"), 1)
		require.False(t, table.Remembers([]byte("key"), 1))
	}
	require.Zero(t, none.Len())
	require.Zero(t, none.Bytes())
}

// insist has a key remembered, which takes several attempts where its slots are taken.
func insist(t *testing.T, table *Table, key []byte, hash uint64) {
	t.Helper()
	for range admitOneIn {
		table.Remember(key, hash)
	}
	require.True(t, table.Remembers(key, hash))
}

// Keys of one hash are told apart, however many there are: made collisions hide nothing.
func TestCollisions(t *testing.T) {
	m := New(1)
	table := m.NewTable()
	for i := range 100 {
		k, _ := key(i)
		insist(t, &table, k, 42)
		for j := i + 1; j < 200; j++ {
			other, _ := key(j)
			require.False(t, table.Remembers(other, 42))
		}
	}
	require.Equal(t, ways, m.Len())
}

// What repeats stays while others come and go, and goes when it does not repeat any more.
func TestWhatRepeatsStays(t *testing.T) {
	m := New(1) // one set
	table := m.NewTable()
	favourite, hash := key(0)
	table.Remember(favourite, hash)
	for i := 1; i < 1000; i++ {
		require.True(t, table.Remembers(favourite, hash), i)
		table.Remember(key(i))
	}
	for i := 1000; i < 1000+admitOneIn*(forgetOneIn*(maxUses+1)+ways); i++ {
		table.Remember(key(i))
	}
	require.False(t, table.Remembers(favourite, hash))
	require.Equal(t, m.Bytes(), Most(1))
}

// Never is anything remembered that was not, and memory stays within its bound.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		size := int64(1 + rng.IntN(4<<10))
		m := New(size)
		tables := make([]Table, 1+rng.IntN(5))
		known := make([]map[string]bool, len(tables))
		for i := range tables {
			tables[i], known[i] = m.NewTable(), map[string]bool{}
		}
		hits := 0
		for range 5000 {
			i := rng.IntN(len(tables))
			k := binary.LittleEndian.AppendUint16(nil, uint16(rng.IntN(100)))
			k = append(k, make([]byte, rng.IntN(3))...)
			hash := uint64(k[0]) % (1 + seed) // few hashes for many keys
			if tables[i].Remembers(k, hash) {
				require.True(t, known[i][string(k)])
				hits++
			} else if rng.IntN(2) == 0 {
				tables[i].Remember(k, hash)
				known[i][string(k)] = true
			}
			require.LessOrEqual(t, m.Bytes(), Most(size))
		}
		require.Positive(t, hits)
	}
}

// Goroutines that remember and ask at once are told nothing that is not so.
func TestRaces(t *testing.T) {
	m := New(512)
	table := m.NewTable()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 20_000 {
				i := rng.IntN(400)
				k, hash := key(i)
				hash %= 16
				if i%2 == 0 {
					table.Remember(k, hash)
				} else if table.Remembers(k, hash) {
					t.Errorf("%s was never remembered", k)
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, m.Len(), 512/SlotBytes)
	n := 0
	s := m.slots.Load()
	for i := range s.facts {
		if s.facts[i].Load() != nil {
			n++
		}
	}
	require.Equal(t, n, m.Len())
}

func TestLanes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		var word, tag uint64
		first := -1
		tag = 1 + uint64(rng.IntN(4))
		for lane := range lanes {
			v := uint64(rng.IntN(5))
			word |= v << (16 * lane)
			if v == tag && first < 0 {
				first = lane
			}
		}
		match := lanesWith(word, tag)
		require.Equal(t, first >= 0, match != 0)
		for lane := range lanes {
			if word>>(16*lane)&0xffff == tag {
				require.NotZero(t, match&(1<<(16*lane+15)), "%016x %x", word, tag)
			}
		}
	}
}

// BenchmarkRemember has keys remembered that are never asked for again.
func BenchmarkRemember(b *testing.B) {
	m := New(256 << 10)
	table := m.NewTable()
	k := make([]byte, 16)
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		n := rng.Uint64()
		binary.LittleEndian.PutUint64(k, n)
		table.Remember(k, n)
	}
}

func BenchmarkRemembers(b *testing.B) {
	m := New(256 << 10)
	tables := make([]Table, 16)
	for i := range tables {
		tables[i] = m.NewTable()
	}
	for i := range 20_000 {
		tables[i%16].Remember(key(i))
	}
	keys, hashes := make([][]byte, 4096), make([]uint64, 4096)
	for _, what := range []string{"others", "remembered"} {
		for i := range keys {
			if keys[i], hashes[i] = key(100_000 + i); what == "remembered" {
				keys[i], hashes[i] = key(19_999 - i)
			}
		}
		b.Run(what, func(b *testing.B) {
			n, i := 0, 0
			for b.Loop() {
				at := i & 4095
				if tables[(19_999-at)%16].Remembers(keys[at], hashes[at]) {
					n++
				}
				i++
			}
			b.ReportMetric(float64(n)/float64(i), "remembered/op")
		})
	}
}
