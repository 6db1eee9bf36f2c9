package memtable

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
)

// Keys of 16 bytes and values of 100, as kvbench has them. Even numbers are
// present, odd ones lie between them.
const (
	benchKeyLen   = 16
	benchValueLen = 100
)

func benchKey(dst []byte, i uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, "12345678"[:benchKeyLen-8]...), i)
}

// spread makes the first words of keys differ, as those of hashed keys do: then the
// list compares numbers, and no keys.
func spread(dst []byte, i uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, i*0x9e3779b97f4a7c15), i)
}

var benchKeys = []struct {
	name string
	key  func(dst []byte, i uint64) []byte
}{{"prefixed", benchKey}, {"spread", spread}}

// benchCapacity is a memtable of the size that stores are compared at; it takes
// about 105,000 of these entries.
const benchCapacity = 16 << 20

// filled returns a full table, with its number of entries.
func filled(b *testing.B, key func([]byte, uint64) []byte) (m *Memtable, n int) {
	b.Helper()
	m = New(benchCapacity)
	value := make([]byte, benchValueLen)
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(100_000) {
		if err := add(m, base.MakeKey(key(nil, uint64(2*i)), base.SeqNum(i), base.KindSet), value); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return m, n
}

// BenchmarkGet looks up keys of a full table, in random order. Its limit is what the
// cache misses cost that depend on each other: one for an absent key (its slot),
// three for a present one (slot, node, and the value, if it is read). Without the
// index it was the height of the list times two or three.
func BenchmarkGet(b *testing.B) {
	for _, keys := range benchKeys {
		m, n := filled(b, keys.key)
		for odd, name := range []string{"present", "absent"} {
			b.Run(fmt.Sprintf("%s/keys=%s", name, keys.name), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					rng := rand.New(rand.NewPCG(rand.Uint64(), 4))
					var key [benchKeyLen]byte
					for pb.Next() {
						i := 2*rng.Uint64N(uint64(n)) + uint64(odd)
						_, _, ok := get(m, keys.key(key[:0], i), base.MaxSeqNum)
						if ok != (odd == 0) {
							b.Error("wrong answer")
							return
						}
					}
				})
			})
		}
	}
}

// BenchmarkSeekGE finds the place of keys by the list: about log4(n) levels, on each
// of which two or three nodes are looked at, the lower ones out of cache.
func BenchmarkSeekGE(b *testing.B) {
	for _, keys := range benchKeys {
		m, n := filled(b, keys.key)
		b.Run("keys="+keys.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(3, 4))
			var key [benchKeyLen]byte
			it := m.NewIter()
			b.ReportAllocs()
			for b.Loop() {
				it.SeekGE(base.SearchKey(keys.key(key[:0], 2*rng.Uint64N(uint64(n))), base.MaxSeqNum))
			}
		})
	}
}

// BenchmarkIter walks a table that was filled in random order: one dependent cache
// miss per entry, and for Prev one more for the hint.
func BenchmarkIter(b *testing.B) {
	m, _ := filled(b, benchKey)
	for name, moves := range map[string]struct{ start, move func(*Iter) bool }{
		"Next": {(*Iter).First, (*Iter).Next},
		"Prev": {(*Iter).Last, (*Iter).Prev},
	} {
		b.Run(name, func(b *testing.B) {
			it := m.NewIter()
			b.ReportAllocs()
			for b.Loop() {
				if !moves.move(it) {
					moves.start(it)
				}
				if len(it.Key().User) != benchKeyLen || len(it.Value()) != benchValueLen {
					b.Fatal("wrong entry")
				}
			}
		})
	}
}

// BenchmarkAdd fills one table after the other: with new keys in order, which takes
// no search; with new keys in random order, whose limit is that of SeekGE; and with
// new versions of a thousand keys, most of which take no search either. To that comes
// the slot in the index, and the pages of the arena that are touched for the first
// time.
func BenchmarkAdd(b *testing.B) {
	orders := []struct {
		name   string
		number func(rng *rand.Rand, i uint64) uint64
	}{
		{"sequential", func(_ *rand.Rand, i uint64) uint64 { return i }},
		{"random", func(rng *rand.Rand, _ uint64) uint64 { return rng.Uint64() }},
		{"versions", func(rng *rand.Rand, _ uint64) uint64 { return rng.Uint64N(1000) }},
	}
	for _, order := range orders {
		b.Run(order.name, func(b *testing.B) {
			var m atomic.Pointer[Memtable]
			var writers, shares atomic.Uint64
			m.Store(New(benchCapacity))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				w := writers.Add(1)
				rng := rand.New(rand.NewPCG(w, 0))
				var key [benchKeyLen]byte
				value := make([]byte, benchValueLen)
				for i := uint64(0); pb.Next(); i++ {
					if i%100 == 0 {
						i = shares.Add(1) * 100 // a batch of numbers for itself
					}
					table := m.Load()
					k := base.MakeKey(benchKey(key[:0], order.number(rng, i)), base.SeqNum(i), base.KindSet)
					for add(table, k, value) != nil {
						m.CompareAndSwap(table, New(benchCapacity))
						table = m.Load()
					}
				}
			})
		})
	}
}
